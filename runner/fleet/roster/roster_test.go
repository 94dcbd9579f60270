package roster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/runner/fleet/roster"
)

func connect(*rest.Config) (*cluster.Cluster, error) { return &cluster.Cluster{}, nil }

func names(members []roster.Member) []string {
	all := []string{}
	for _, member := range members {
		all = append(all, member.Cluster.Name)
	}
	return all
}

func TestContexts(t *testing.T) {
	config := clientcmdapi.Config{Contexts: map[string]*clientcmdapi.Context{"prod-1": {}, "default/api-prod:6443/admin": {}, "test.1": {}}}
	load := func(name string) (*rest.Config, error) { return &rest.Config{Host: "https://" + name}, nil }
	for name, tc := range map[string]struct {
		reason   string
		patterns []string
		want     []string
	}{
		"Whole": {reason: "a name without a pattern", patterns: []string{"test.1"}, want: []string{"test.1"}},
		"All": {
			reason: "names of oc login have slashes", patterns: []string{"*"},
			want: []string{"default/api-prod:6443/admin", "prod-1", "test.1"},
		},
		"Twice":    {reason: "a context that two patterns match is one member", patterns: []string{"prod-*", "prod-?"}, want: []string{"prod-1"}},
		"NoRegexp": {reason: "a dot is a dot", patterns: []string{"prod.1"}},
		"None":     {reason: "a pattern that matches none is a mistake", patterns: []string{"prod-*", "stage-*"}},
	} {
		t.Run(name, func(t *testing.T) {
			members, err := roster.Contexts(config, tc.patterns, load, connect)
			if _, bad := errors.AsType[*input.Error](err); bad != (tc.want == nil) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, names(members)); tc.want != nil && diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDistinct(t *testing.T) {
	config := clientcmdapi.Config{Contexts: map[string]*clientcmdapi.Context{"a": {}, "b": {}, "c": {}, "d": {}}}
	members, err := roster.Contexts(config, []string{"*"}, func(name string) (*rest.Config, error) {
		switch name {
		case "a", "b":
			return &rest.Config{Host: "https://same/"}, nil
		case "c": // behind the same address, by another name
			return &rest.Config{Host: "https://same", TLSClientConfig: rest.TLSClientConfig{ServerName: "other"}}, nil
		}
		return nil, errors.New("no user")
	}, connect)
	if err != nil {
		t.Fatal(err)
	}
	kept, notices := roster.Distinct(members)
	if diff := cmp.Diff([]string{"a", "c", "d"}, names(kept)); diff != "" || len(notices) != 1 ||
		!strings.Contains(notices[0], "b (context b) has the API server of a") {
		t.Errorf("%q, -want +got:\n%s", notices, diff)
	}
	if _, err := kept[2].Open(t.Context()); err == nil {
		t.Error("a context that cannot be used is a member that cannot be reached")
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", ".hidden", "a.tar.gz", "notes.txt", "c.tar.zst", "d.TAR.BZ2", "dir/file"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfigs, err := roster.Kubeconfigs([]string{dir, filepath.Join(dir, "b.yaml")},
		func(string) (*rest.Config, error) { return &rest.Config{}, nil }, connect)
	if diff := cmp.Diff([]string{"a", "b", "c.tar.zst", "d.TAR.BZ2", "notes.txt"}, names(kubeconfigs)); diff != "" || err != nil {
		t.Errorf("every file, each once: %v, -want +got:\n%s", err, diff)
	}
	archives, notices, err := roster.Archives([]string{dir},
		func(context.Context, string) (*cluster.Cluster, error) { return nil, errors.New("damaged") })
	if diff := cmp.Diff([]string{"a", "c.tar.zst", "d.TAR.BZ2", "dir"}, names(archives)); diff != "" || err != nil {
		t.Errorf("directories and packed files, also those that cannot be read: %v, -want +got:\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"2 files skipped because their names are not names of archives: b.yaml, notes.txt"}, notices); diff != "" {
		t.Errorf("other files: -want +got:\n%s", diff)
	}
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "dir")} {
		if _, _, err := roster.Archives([]string{path}, nil); err == nil {
			t.Errorf("%s has no archive", path)
		}
	}
}
