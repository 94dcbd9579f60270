package evidence

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/words"
)

// BlockedEdge is a risk of a conditional update, in the form of blocked-edges/*.yaml of the data of an update service
// (openshift/cincinnati-graph-data, README.md, "Block Edges", version 1.1.0 of its schema).
type BlockedEdge struct {
	To string `json:"to"`
	// From is a regular expression that is searched in the version with its architecture, such as 4.18.3+amd64.
	From          string         `json:"from"`
	URL           string         `json:"url"`
	Name          string         `json:"name"`
	Message       string         `json:"message"`
	MatchingRules []MatchingRule `json:"matchingRules"`
}

// MatchingRule decides to which clusters a risk applies.
type MatchingRule struct {
	Type   string  `json:"type"`
	PromQL *PromQL `json:"promql,omitempty"`
}

// PromQL is a query whose result is 1 for a cluster to which the risk applies, and 0 for another.
type PromQL struct {
	PromQL string `json:"promql"`
}

// maxURL bounds a URL, in bytes.
const maxURL = 2 << 10

// platforms is a type of platform that can be a label in a query.
var platforms = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// GraphData are the risks of the update to the target: one for each cause. The URL, which is http or https, is where the
// risk is documented; any other is an *input.Error. Where all clusters that regressed have one platform that no good one
// has, the risk applies to this platform, and otherwise to every cluster.
func GraphData(s Summary, documented string) ([]BlockedEdge, error) {
	parsed, err := url.Parse(documented)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" || len(documented) > maxURL {
		return nil, input.Errorf("%q is no http or https URL where the risk is documented", words.External(documented))
	}
	edges := make([]BlockedEdge, 0, len(s.Causes))
	for _, cause := range s.Causes {
		edges = append(edges, BlockedEdge{
			To: s.Target, From: ".*", URL: documented, Name: riskName(cause.Name, s.Target),
			Message: s.riskMessage(cause), MatchingRules: []MatchingRule{cause.rule()},
		})
	}
	return edges, nil
}

// notWord are the characters that the name of a risk may not have: it becomes the reason of a condition.
var notWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

// riskName is the name of a risk: CamelCase, the same for each export, and another for each target, since CVO accepts
// risks by name.
func riskName(cause, target string) string {
	var made strings.Builder
	for _, part := range notWord.Split("AfterUpdate-"+cause, -1) {
		if part != "" {
			made.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return made.String() + "To" + notWord.ReplaceAllString(target, "x")
}

func (s Summary) riskMessage(cause Cause) string {
	all := s.Alike.plus(s.Others)
	text := fmt.Sprintf("%d of %s that took %s regressed by %s after the update, and %d were good", cause.Clusters, words.Count(all.All(), "cluster"), s.Target, cause.Name, all.Good)
	if cause.Name == CauseRolledBack {
		text = fmt.Sprintf("%d of %s that took %s were rolled back, and %d were good", cause.Clusters, words.Count(all.All(), "cluster"), s.Target, all.Good)
	}
	if len(cause.Common) > 0 {
		var common []string
		for _, each := range cause.Common {
			common = append(common, each.text())
		}
		text += "; what only clusters that regressed have: " + strings.Join(common, ", ")
	}
	return words.Sentence(text)
}

func (c Cause) rule() MatchingRule {
	at := slices.IndexFunc(c.Common, func(p Property) bool { return p.Field == Platform })
	if at < 0 || !platforms.MatchString(c.Common[at].Value) {
		return MatchingRule{Type: "Always"}
	}
	const query = `topk by (_id) (1,
  group by (_id, type) (cluster_infrastructure_provider{_id="",type="%[1]s"})
  or
  0 * group by (_id, type) (cluster_infrastructure_provider{_id="",type!="%[1]s"})
)
`
	return MatchingRule{Type: "PromQL", PromQL: &PromQL{fmt.Sprintf(query, c.Common[at].Value)}}
}

// FileName is the name of the file of a risk below blocked-edges.
func (e BlockedEdge) FileName() string { return e.To + "-" + e.Name + ".yaml" }

// EncodeGraphData writes risks in YAML, each after a comment with the name of its file.
func EncodeGraphData(edges []BlockedEdge) ([]byte, error) {
	var out bytes.Buffer
	for i, each := range edges {
		text, err := yaml.Marshal(each)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		fmt.Fprintf(&out, "# blocked-edges/%s\n%s", each.FileName(), text)
	}
	return out.Bytes(), nil
}
