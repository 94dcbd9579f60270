package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
)

const (
	// graphsLimit bounds all graphs, in bytes. The largest public one has 0.4 MB.
	graphsLimit = 256 << 20
	// envelopeLimit bounds what a file has beside the graph, in bytes. A channel and a URL
	// are bounded by the command line.
	envelopeLimit = 1 << 20
)

// Graphs stores the graphs of update services, each by its updateservice.Key. They are not
// authenticated: a graph is advice.
type Graphs struct{ directory *Directory }

// OpenGraphs opens the graphs in the directory of a cache, as Open does. They have at most
// 256 MiB; the oldest are evicted first.
func OpenGraphs(path string) (*Graphs, error) {
	directory, err := open(path, "graphs", graphsLimit)
	if err != nil {
		return nil, err
	}
	return &Graphs{directory}, nil
}

type storedGraph struct {
	URL          string          `json:"url"`
	Channel      string          `json:"channel"`
	Architecture string          `json:"architecture"`
	Time         time.Time       `json:"time"`
	Graph        json.RawMessage `json:"graph"`
}

// Put stores a graph, a JSON document, that was received at that time, in place of the one
// that was stored before. The file is replaced atomically.
func (g *Graphs) Put(key updateservice.Key, received time.Time, content []byte) error {
	document := documentOf(key)
	document.Time, document.Graph = received.UTC(), content
	encoded, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("cannot store the graph of channel %q in the cache: %w", key.Channel, err)
	}
	if err := g.directory.write(filepath.Join(g.directory.path, nameOf(key)), encoded); err != nil {
		return fmt.Errorf("cannot store the graph of channel %q in the cache: %w", key.Channel, err)
	}
	return g.directory.shrink()
}

// Get returns the stored graph, and when it was received. The result is false if none is
// stored, and for a file that is not that of the key.
func (g *Graphs) Get(key updateservice.Key) (content []byte, received time.Time, ok bool) {
	encoded, err := g.directory.read(nameOf(key), graph.MaxBytes+envelopeLimit)
	if err != nil {
		return nil, time.Time{}, false
	}
	var stored storedGraph
	want := documentOf(key)
	if json.Unmarshal(encoded, &stored) != nil || stored.URL != want.URL || stored.Channel != want.Channel || stored.Architecture != want.Architecture || stored.Time.IsZero() {
		return nil, time.Time{}, false
	}
	return stored.Graph, stored.Time, true
}

// documentOf has the key, without the password that the URL may have.
func documentOf(k updateservice.Key) storedGraph {
	document := storedGraph{Channel: k.Channel, Architecture: k.Architecture}
	if parsed, err := url.Parse(k.URL); err == nil {
		document.URL = parsed.Redacted()
	}
	return document
}

// nameOf names the file of a graph by the hash of all parts of its key.
func nameOf(k updateservice.Key) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{k.URL, k.Channel, k.Architecture}, "\x00")))
	return hex.EncodeToString(sum[:])
}
