package updateservice_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
)

const smallGraph = `{"nodes":[{"version":"4.18.1","payload":"r@sha256:1"}],"edges":[]}`

func TestGraph(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		id     string
		status int
		body   string
		query  string
		want   string
	}{
		"NoID": {reason: "the ID of the cluster is withheld", body: smallGraph, query: "arch=amd64&channel=eus-4.18&keep=1&version=4.16.27"},
		"ID": {
			reason: "the cluster's own service receives its ID", id: "c1", body: smallGraph,
			query: "arch=amd64&channel=eus-4.18&id=c1&keep=1&version=4.16.27",
		},
		"Reported": {
			reason: "the service reports its error", status: http.StatusBadRequest,
			body: `{"kind":"invalid_params","value":"bad \u001b[31mchannel"}`, want: "HTTP status 400 Bad Request: invalid_params: bad channel",
		},
		"Silent":  {reason: "the service reports nothing", status: http.StatusNotFound, body: "<html>", want: "HTTP status 404 Not Found"},
		"NoGraph": {reason: "the response is not a graph", body: "<html>", want: "is not a JSON document"},
		"Large":   {reason: "the response is too large", body: strings.Repeat(" ", 17<<20), want: "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var query, accept string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				query, accept = r.URL.RawQuery, r.Header.Get("Accept")
				w.WriteHeader(max(tc.status, http.StatusOK))
				fmt.Fprint(w, tc.body)
			}))
			t.Cleanup(server.Close)
			requested := updateservice.Query{
				URL: server.URL + "/graph?keep=1", Channel: "eus-4.18", Architecture: "amd64", Version: "4.16.27",
				ID: tc.id,
			}
			got, content, err := updateservice.Graph(t.Context(), http.DefaultTransport, requested)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
				}
				return
			}
			if err != nil || len(got.Releases) != 1 || string(content) != tc.body || accept != "application/json" {
				t.Fatalf("%s: got %v, %v, Accept: %s", tc.reason, got, err, accept)
			}
			if diff := cmp.Diff(tc.query, query); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for address, valid := range map[string]bool{
		"https://updates.example.com/graph": true, "http://localhost:8080/graph": true,
		"ftp://example.com/graph": false, "https:///graph": false, "https://%zz": false,
	} {
		if err := updateservice.Check(address); (err == nil) != valid {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// An error names the service, and not its password.
func TestNoPassword(t *testing.T) {
	t.Parallel()
	_, _, err := updateservice.Graph(t.Context(), http.DefaultTransport,
		updateservice.Query{URL: "http://user:secret@127.0.0.1:1/graph", Channel: "c", ID: "c1"})
	if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "id=") ||
		!strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}
