package preflighttest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/preflight-sdk/preflighttest"
)

// cordoned is a check as an author writes it: the function that declares it takes
// the client as a parameter.
func cordoned(client *http.Client, server string) preflight.Check {
	return preflight.Check{
		Name:        "CordonedNodes",
		Description: "No node is cordoned",
		Run: func(ctx context.Context, t *preflight.T) error {
			all, err := nodes(ctx, client, server)
			if err != nil {
				return err
			}
			for _, node := range all {
				if node.Spec.Unschedulable {
					t.Warnf("node %s is cordoned", node.Metadata.Name)
					t.Remedyf("oc adm uncordon %s", node.Metadata.Name)
					t.Object(preflight.Object{APIVersion: "v1", Kind: "Node", Name: node.Metadata.Name})
				}
			}
			return nil
		},
	}
}

type node struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable bool `json:"unschedulable"`
	} `json:"spec"`
}

func nodes(ctx context.Context, client *http.Client, server string) ([]node, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/nodes", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot list nodes: %s", response.Status)
	}
	var list struct {
		Items []node `json:"items"`
	}
	err = json.NewDecoder(response.Body).Decode(&list)
	return list.Items, err
}

const twoNodes = `{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":{"unschedulable":true}}]}`

// api starts a fake API server that returns the same response to every request, and
// Forbidden if the response is empty.
func api(t *testing.T, response string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if response == "" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte(response))
	}))
	t.Cleanup(server.Close)
	return server
}

// A table of states and expected findings.
func TestCordonedNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes string
		want  preflighttest.Want
	}{
		"None":      {`{"items":[]}`, preflighttest.Want{Outcome: preflight.Pass, Message: "No node is cordoned"}},
		"One":       {twoNodes, preflighttest.Want{Outcome: preflight.Warn, Message: "node b", Remedy: "oc adm uncordon b"}},
		"Forbidden": {"", preflighttest.Want{Outcome: preflight.Unknown, Message: "403 Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := api(t, tc.nodes)
			preflighttest.Expect(t, preflighttest.Run(t, cordoned(server.Client(), server.URL), preflight.Update{}), tc.want)
		})
	}
}

// The whole finding in a golden file.
func TestCordonedNodesGolden(t *testing.T) {
	server := api(t, twoNodes)
	finding := preflighttest.Run(t, cordoned(server.Client(), server.URL), preflight.Update{})
	preflighttest.Golden(t, "testdata/cordoned.json", finding)
}
