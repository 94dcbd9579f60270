package graphsource_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
)

const twoReleases = `{"nodes":[{"version":"4.18.3","payload":"r@sha256:1111111111111111111111111111111111111111111111111111111111111111"},
 {"version":"4.19.1","payload":"r@sha256:2222222222222222222222222222222222222222222222222222222222222222"}],"edges":[[0,1]]}`

// stored is a store with graphs that were received at that time.
type stored struct {
	graphs   map[updateservice.Key][]byte
	received time.Time
	// failure is returned by Put.
	failure error
}

// Get implements updateservice.Store.
func (s *stored) Get(key updateservice.Key) ([]byte, time.Time, bool) {
	content, found := s.graphs[key]
	return content, s.received, found
}

// Put implements updateservice.Store.
func (s *stored) Put(key updateservice.Key, received time.Time, content []byte) error {
	if s.failure == nil {
		s.graphs[key], s.received = content, received
	}
	return s.failure
}

// newService serves the graph of the channel stable, and an empty one of each other channel. It returns the
// queries so far.
func newService(t *testing.T) (address string, queries func() []string) {
	t.Helper()
	var mutex sync.Mutex
	var received []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		received = append(received, r.URL.RawQuery)
		if r.URL.Query().Get("channel") == "stable" {
			_, _ = io.WriteString(w, twoReleases)
			return
		}
		_, _ = io.WriteString(w, `{"nodes":[],"edges":[]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/graph", func() []string {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(received)
	}
}

func TestRead(t *testing.T) {
	address, queries := newService(t)
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	key := updateservice.Key{URL: address, Channel: "stable", Architecture: "amd64"}
	kept := func(age time.Duration) *stored {
		return &stored{graphs: map[updateservice.Key][]byte{key: []byte(twoReleases)}, received: now.Add(-age)}
	}
	file := func(content string) []graphsource.File {
		return []graphsource.File{{Name: "stable.json", Content: []byte(content)}}
	}
	many := make([]graphsource.File, 33)
	for i := range many {
		many[i] = file(twoReleases)[0]
	}
	for name, tc := range map[string]struct {
		reason  string
		request graphsource.Request
		// requests is how many the update service gets.
		requests int
		sources  []string
		// notice and failure are parts of the only notice and of the error; hint is that of the error.
		notice, failure, hint string
	}{
		"Service": {
			reason: "the service of the cluster", request: graphsource.Request{Channels: []string{"stable"}}, requests: 1,
			sources: []string{"stable"},
		},
		"File": {reason: "a file needs no service", request: graphsource.Request{Files: file(twoReleases)}, sources: []string{"stable.json"}},
		"Both": {reason: "graphs are united", request: graphsource.Request{
			Files: file(twoReleases), Services: []string{address},
			Channels: []string{"stable"},
		}, requests: 1, sources: []string{"stable", "stable.json"}},
		"Recent": {
			reason:  "a recent graph is not requested again",
			request: graphsource.Request{Channels: []string{"stable"}, Graphs: kept(9 * time.Minute)}, sources: []string{"stable"},
		},
		"Old": {
			reason: "an older one is", request: graphsource.Request{Channels: []string{"stable"}, Graphs: kept(11 * time.Minute)},
			requests: 1, sources: []string{"stable"},
		},
		"Future": {
			reason: "one of a wrong clock is", request: graphsource.Request{Channels: []string{"stable"}, Graphs: kept(-time.Minute)},
			requests: 1, sources: []string{"stable"},
		},
		"Offline": {reason: "the age of what is stored is stated", request: graphsource.Request{
			Channels: []string{"stable"},
			Graphs:   kept(48 * time.Hour), Offline: true,
		}, sources: []string{"stable"}, notice: "offline: the graph of channel stable is 2d old"},
		"NotStored": {
			reason: "the command that stores it", request: graphsource.Request{Channels: []string{"fast"}, Graphs: kept(time.Minute), Offline: true},
			failure: `no graph of channel "fast" for amd64 is stored`,
			hint:    "oc preflight plan --from 4.18.3 --channel fast --arch amd64 --graph " + address,
		},
		"NoStore": {
			reason: "without a store nothing is stored", request: graphsource.Request{Channels: []string{"stable"}, Offline: true},
			failure: `no graph of channel "stable"`,
		},
		"NotKept": {reason: "the plan is made also where the graph cannot be stored", request: graphsource.Request{
			Channels: []string{"stable"},
			Graphs:   &stored{failure: errors.New("the disk is full")},
		}, requests: 1, sources: []string{"stable"}, notice: "the disk is full"},
		"NoChannel": {reason: "a channel is missing", failure: "no channel is known to request from " + address, hint: "--channel"},
		"Unknown": {
			reason: "a channel that the service does not have", request: graphsource.Request{Channels: []string{"stabel"}}, requests: 1,
			failure: `no release in channel "stabel" for amd64`,
		},
		"Empty": {
			reason: "a file without releases is the wrong file", request: graphsource.Request{Files: file(`{"nodes":[],"edges":[]}`)},
			failure: "the update graph stable.json has no release",
		},
		"Torn": {reason: "the error names the file", request: graphsource.Request{Files: file(`{"nodes":`)}, failure: "stable.json"},
		"Many": {
			reason: "the graphs of a plan are bounded", request: graphsource.Request{Files: many},
			failure: "the plan needs 33 graphs, more than 32",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(queries())
			request := tc.request
			request.Architecture = "amd64"
			united, err := request.Read(t.Context(), graphsource.Position{
				From: "4.18.3", Now: now, Logger: slog.New(slog.DiscardHandler),
				Service: graphsource.Service{Transport: http.DefaultTransport, URL: address, ID: "the-cluster"},
			})
			if got := len(queries()) - before; got != tc.requests {
				t.Errorf("%s: %d requests, want %d", tc.reason, got, tc.requests)
			}
			if tc.failure != "" {
				if _, isInput := errors.AsType[*input.Error](err); !isInput || !strings.Contains(err.Error(), tc.failure) {
					t.Fatalf("%s: %v, want an input error with %q", tc.reason, err, tc.failure)
				}
				if tc.hint != "" && !strings.Contains(remedyOf(err), tc.hint) {
					t.Errorf("%s: the error has not the hint %q", tc.reason, tc.hint)
				}
				return
			}
			if err != nil || !slices.Equal(united.Sources, tc.sources) || len(united.Graph.Releases) != 2 {
				t.Errorf("%s: sources %q, %v; want %q", tc.reason, united.Sources, err, tc.sources)
			}
			if got := strings.Join(united.Notices, "\n"); !strings.Contains(got, tc.notice) || tc.notice == "" && got != "" {
				t.Errorf("%s: notices %q, want %q", tc.reason, got, tc.notice)
			}
		})
	}
}

// The ID of the cluster is sent to the service of the cluster only: another one must not learn of it.
func TestTheIDIsForTheServiceOfTheCluster(t *testing.T) {
	own, ownQueries := newService(t)
	other, otherQueries := newService(t)
	at := graphsource.Position{
		From: "4.18.3", Now: time.Now(), Logger: slog.New(slog.DiscardHandler),
		Service: graphsource.Service{Transport: http.DefaultTransport, URL: own, ID: "the-cluster"},
	}
	request := graphsource.Request{Services: []string{own, other}, Channels: []string{"stable"}, Architecture: "amd64"}
	if _, err := request.Read(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(ownQueries(), ""); !strings.Contains(got, "id=the-cluster") {
		t.Errorf("the service of the cluster got %q", got)
	}
	if got := strings.Join(otherQueries(), ""); strings.Contains(got, "the-cluster") {
		t.Errorf("another service got %q", got)
	}
}

// A password of a URL is in no error, which may be stored or sent.
func TestPasswordsOfServices(t *testing.T) {
	for _, err := range []error{
		&graphsource.NotStoredError{Key: updateservice.Key{
			URL: "https://user:secret@graph.example.com", Channel: "stable",
			Architecture: "amd64",
		}, From: "4.18.3"},
		&graphsource.NoChannelError{Service: "https://user:secret@graph.example.com"},
	} {
		text := err.Error() + remedyOf(err)
		if strings.Contains(text, "secret") || !strings.Contains(text, "graph.example.com") {
			t.Errorf("%q has the password, or not the service", text)
		}
	}
}

// remedyOf is the remedy of an error with its commands, each on a line.
func remedyOf(err error) string {
	remedied, ok := errors.AsType[interface {
		error
		Remedy() (string, []finding.Action)
	}](err)
	if !ok {
		return ""
	}
	text, commands := remedied.Remedy()
	for _, each := range commands {
		text += "\n" + each.Command
	}
	return text
}
