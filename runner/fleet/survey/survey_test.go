package survey_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
	"github.com/openshift/update-preflight/runner/fleet/survey"
)

// members are clusters of files with these names, which no request reaches.
func members(t *testing.T, names ...string) []roster.Member {
	t.Helper()
	var files []string
	for _, name := range names {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	var all []roster.Member
	for _, path := range files { // in the order of the names
		made, err := roster.Kubeconfigs([]string{path}, func(string) (*rest.Config, error) { return &rest.Config{Host: "https://" + path}, nil },
			func(*rest.Config) (*cluster.Cluster, error) { return &cluster.Cluster{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, made...)
	}
	return all
}

// judge answers by the name of the member.
func judge(ctx context.Context, member roster.Member, _ roster.Connection) (fleet.Row, error) {
	row := fleet.Row{Cluster: member.Cluster, State: fleet.Ready}
	switch member.Cluster.Name {
	case "fails":
		return row, errors.New("certificate has \x1b[31mexpired")
	case "late":
		<-ctx.Done()
		return row, nil
	}
	return row, nil
}

func TestRows(t *testing.T) {
	all := members(t, "fails", "late", "ready", "asleep", "hangs")
	all[3].State, all[3].Message = fleet.Hibernating, "stopped"
	synctest.Test(t, func(t *testing.T) {
		began, released := time.Now(), make(chan struct{})
		defer close(released)
		rows, err := survey.Survey{Parallel: 3, Timeout: time.Minute}.Rows(t.Context(), all,
			func(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error) {
				if member.Cluster.Name == "hangs" {
					<-released // also when its time is up
				}
				return judge(ctx, member, reached)
			})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			state   fleet.State
			message string
		}{
			{fleet.Unreachable, "certificate has expired"},
			{fleet.Unreachable, "did not answer within 1m0s"},
			{fleet.Ready, ""},
			{fleet.Hibernating, "stopped"},
			{fleet.Unreachable, "did not answer within 1m0s"},
		} {
			if rows[i].State != want.state || !strings.Contains(rows[i].Message, want.message) {
				t.Errorf("%s: %s, %q; want %s, %q", all[i].Cluster.Name, rows[i].State, rows[i].Message, want.state, want.message)
			}
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("took %s: the time is that of the slowest member", took)
		}
	})
}

// TestAttacksByACluster has a cluster whose API server sends without end, which the judge ignores: it is
// Unreachable, and the other one has its row.
func TestAttacksByACluster(t *testing.T) {
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 1 << 20 {
			if _, err := io.WriteString(w, strings.Repeat(" ", 64<<10)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(hostile.Close)
	good := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(good.Close)
	config := clientcmdapi.Config{Contexts: map[string]*clientcmdapi.Context{"good": {}, "hostile": {}}}
	all, err := roster.Contexts(config, []string{"*"}, func(name string) (*rest.Config, error) {
		return &rest.Config{Host: map[string]string{"good": good.URL, "hostile": hostile.URL}[name]}, nil
	}, func(config *rest.Config) (*cluster.Cluster, error) { return cluster.Connect(config, "test") })
	if err != nil {
		t.Fatal(err)
	}
	rows, err := survey.Survey{Parallel: 2, Timeout: time.Minute}.Rows(t.Context(), all,
		func(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error) {
			_, _ = reached.Cluster.Kubernetes.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
			return fleet.Row{Cluster: member.Cluster, State: fleet.Ready}, nil
		})
	if err != nil || len(rows) != 2 || rows[0].State != fleet.Ready {
		t.Fatalf("%+v, %v", rows, err)
	}
	if row := rows[1]; row.Cluster.Name != "hostile" || row.State != fleet.Unreachable || row.Causes[0].Reason != "TooMuchSent" ||
		!strings.Contains(row.Message, "more than 64 MiB") {
		t.Errorf("%+v", row)
	}
}

func TestInterruptedSurvey(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rows, err := survey.Survey{Parallel: 1, Timeout: time.Minute}.Rows(ctx, members(t, "a"), judge)
	if err != nil || rows[0].State != fleet.Unreachable || !strings.Contains(rows[0].Message, "interrupted") {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestWays has two users of one API server, of which the first is rejected.
func TestWays(t *testing.T) {
	config := clientcmdapi.Config{Contexts: map[string]*clientcmdapi.Context{"admin": {}, "before": {}, "former": {}}}
	all, err := roster.Contexts(config, []string{"*"}, func(string) (*rest.Config, error) { return &rest.Config{Host: "https://same"}, nil },
		func(config *rest.Config) (*cluster.Cluster, error) { return cluster.Connect(config, "test") })
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		works  string
		want   fleet.State
	}{
		"Second": {reason: "the credentials of another context are accepted", works: "before", want: fleet.Ready},
		"None":   {reason: "no credentials are, and the first are named", want: fleet.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			kept, _ := roster.Distinct(all)
			var asked []string
			shown := map[int]string{}
			progress := func(_, _, member int, row fleet.Row) { shown[member] = row.Cluster.Name }
			rows, err := survey.Survey{Parallel: 1, Timeout: time.Minute, Progress: progress}.Rows(t.Context(), kept,
				func(_ context.Context, member roster.Member, _ roster.Connection) (fleet.Row, error) {
					asked = append(asked, member.Cluster.Name)
					if member.Cluster.Name != tc.works {
						return fleet.Row{}, fmt.Errorf("could not read ClusterVersion: %w", apierrors.NewUnauthorized("Unauthorized"))
					}
					return fleet.Row{Cluster: member.Cluster, State: fleet.Ready}, nil
				})
			if err != nil || len(rows) != 1 || rows[0].State != tc.want {
				t.Fatalf("%s: asked %q, got %+v, %v", tc.reason, asked, rows, err)
			}
			if row := rows[0]; tc.works == "" && (row.Cluster.Name != "admin" || row.Causes[0].Reason != "Unauthorized" ||
				!strings.HasPrefix(row.Causes[0].Remediation, "Log in")) {
				t.Errorf("%s: %+v", tc.reason, row)
			}
			if len(shown) != 1 || shown[0] != rows[0].Cluster.Name {
				t.Errorf("%s: the progress is %v, want that of the first member, under the name of its row", tc.reason, shown)
			}
			if row := rows[0]; tc.works != "" && row.Cluster.Name != tc.works {
				t.Errorf("%s: the row is that of %s", tc.reason, row.Cluster.Name)
			}
		})
	}
}
