package story

import (
	"fmt"
	"os"
	"path/filepath"
)

// Later is the last release of the plan of the story, after To.
const Later = "5.2.7"

// graph is the response of an update service for the channel stable-5.2: From, To and Later,
// with a conditional update whose risk does not apply to the cluster.
const graph = `{"nodes":[
 {"version":"%s","payload":"%s"},
 {"version":"%s","payload":"%s","metadata":{"url":"https://access.redhat.com/errata/RHBA-2026:0001"}},
 {"version":"%s","payload":"registry.example.com/openshift/release@sha256:%s"}],
 "edges":[[0,1]],
 "conditionalEdges":[{"edges":[{"from":"%s","to":"%s"}],"risks":[{
  "name":"SlowRoutesOnOneZone","message":"Routes are slow in clusters whose nodes are in one zone.",
  "url":"https://example.com/SlowRoutesOnOneZone","matchingRules":[{"type":"PromQL","promql":{"promql":"vector(0)"}}]}]}]}
`

// GraphFile returns the path of the file with the update graph of the story, which is named
// after its channel.
func GraphFile(directory string) string { return filepath.Join(directory, "stable-5.2.json") }

// writeGraph writes the update graph. The pull specs are those of From and To.
func writeGraph(directory, from, to string) error {
	later := fmt.Sprintf("%064d", 7)
	content := fmt.Sprintf(graph, From, from, To, to, Later, later, To, Later)
	return os.WriteFile(GraphFile(directory), []byte(content), 0o600)
}
