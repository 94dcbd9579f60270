package cli_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
)

// A kubeconfig that cannot be used is an error with its name, and no other cluster is asked instead.
func TestKubeconfigs(t *testing.T) {
	directory := t.TempDir()
	path := func(name string) string { return filepath.Join(directory, name) }
	const cluster = `{"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"%s}}],"contexts":[{"name":"c","context":{"cluster":"c"%s}}],"current-context":"c"%s}`
	for name, content := range map[string]string{
		"text": "no kubeconfig: [", "server": fmt.Sprintf(cluster, "", "", ""), "large": strings.Repeat("#", 17<<20),
		"authority": fmt.Sprintf(cluster, fmt.Sprintf(`,"certificate-authority":%q`, path("pipe")), "", ""),
		"user":      fmt.Sprintf(cluster, "", `,"user":"u"`, fmt.Sprintf(`,"users":[{"name":"u","user":{"tokenFile":%q}}]`, path("pipe"))),
	} {
		if err := os.WriteFile(path(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path("server"))
	for name, tc := range map[string]struct {
		reason string
		args   []string
		stated string
	}{
		"Missing": {reason: "a file that does not exist", args: []string{"--kubeconfig", path("missing")}, stated: path("missing")},
		"Text": {
			reason: "a file that is none", args: []string{"--kubeconfig", path("text")},
			stated: "the connection to the cluster is not configured: ",
		},
		"Large": {
			reason: "a file that would fill the memory", args: []string{"--kubeconfig", path("large")},
			stated: "has 17825792 bytes, want at most 16777216",
		},
		"Pipe": {
			reason: "a pipe would be waited for", args: []string{"--kubeconfig", path("pipe")},
			stated: path("pipe") + " is not a regular file",
		},
		"Authority": {
			reason: "so would one that the kubeconfig names", args: []string{"--kubeconfig", path("authority")},
			stated: `certificate authority of the cluster "c": ` + path("pipe"),
		},
		"Token": {
			reason: "or that has the credentials", args: []string{"--kubeconfig", path("user")},
			stated: `credentials of the user "u": ` + path("pipe"),
		},
		"Flag": {
			reason: "or that a flag names", args: []string{"--certificate-authority", path("pipe")},
			stated: "--certificate-authority: " + path("pipe"),
		},
		"Context": {reason: "a context that the kubeconfig does not have", args: []string{"--context", "other"}, stated: `"other"`},
		"Cluster": {reason: "a cluster that it does not have", args: []string{"--cluster", "other"}, stated: `"other"`},
		"Proxy": {
			reason: "a proxy that is no URL", args: []string{"--proxy-url", "::"},
			stated: "the connection to the cluster is not configured",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, append([]string{"history"}, tc.args...)...)
			if got.Code != exit.Failed || !strings.Contains(got.Stderr, tc.stated) || got.Stdout != "" {
				t.Errorf("%s: exit code %d, want %d and %q\n%s%s", tc.reason, got.Code, exit.Failed, tc.stated, got.Stdout, got.Stderr)
			}
		})
	}
	t.Run("NotConfigured", func(t *testing.T) {
		t.Setenv("KUBECONFIG", path("missing"))
		got := program.Call(t, "history")
		if want := "no cluster is configured: run oc login, or name a kubeconfig with --kubeconfig or KUBECONFIG; "; got.Code != exit.Failed ||
			!strings.Contains(got.Stderr, want) || !strings.Contains(got.Stderr, path("missing")) {
			t.Errorf("exit code %d\n%s\nwant %q", got.Code, got.Stderr, want)
		}
	})
}

// The flags of kubectl about the user are those of the requests, and what is shown has no password.
func TestRequests(t *testing.T) {
	server := apiserver.Start(t)
	var users []string
	var mutex sync.Mutex
	server.Deny(func(user string, _ apiserver.Request) bool {
		mutex.Lock()
		defer mutex.Unlock()
		users = append(users, user)
		return false
	})
	got := program.Call(t, "history", "--kubeconfig", server.Kubeconfig, "--as", "alice", "--as-group", "ops", "--as-user-extra",
		"reason=test", "--as-user-extra", "ignored")
	if got.Code != exit.Ready {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	if slices.Sort(users); len(slices.Compact(users)) != 1 || users[0] != "alice" {
		t.Errorf("the requests are of %q", users)
	}
	secret := strings.Replace(server.URL, "http://", "http://user:secret@", 1)
	shown := program.Call(t, "history", "--kubeconfig", server.Kubeconfig, "--server", secret)
	if text := shown.Stdout + shown.Stderr; strings.Contains(text, "secret") {
		t.Errorf("the output has the password of the URL:\n%s", text)
	}
}

// -v logs the requests, and standard output stays the document.
func TestLog(t *testing.T) {
	server := apiserver.Start(t)
	quiet := program.Call(t, "history", "--kubeconfig", server.Kubeconfig, "-o", "json")
	logged := program.Call(t, "history", "--kubeconfig", server.Kubeconfig, "-o", "json", "-v", "6")
	if quiet.Stderr != "" || !strings.Contains(logged.Stderr, "/api/v1/namespaces/openshift-cluster-version/configmaps") ||
		quiet.Stdout != logged.Stdout {
		t.Errorf("without -v: %q; with it: %q", quiet.Stderr, logged.Stderr)
	}
}

// Archives of two clusters are no cluster, and one that does not exist is named.
func TestArchives(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	if err := os.CopyFS(other, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(other, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "clusterversions.yaml" {
			return err
		}
		content, err := os.ReadFile(name)
		return errors.Join(err, os.WriteFile(name,
			[]byte(strings.ReplaceAll(string(content), "5d1c2f04-7a3e-4f0b-9a55-0c6a7f3b9e18", "00000000-7a3e-4f0b-9a55-0c6a7f3b9e18")), 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		stated string
	}{
		"Missing": {reason: "the error names the path", args: []string{"--archive", "./missing"}, code: exit.Failed, stated: "--archive: "},
		"Empty": {
			reason: "a directory without objects is none", args: []string{"--archive", t.TempDir()}, code: exit.Failed,
			stated: "--archive: ",
		},
		"Two": {
			reason: "a verdict is about one cluster", args: []string{"--archive", example, "--archive", other}, code: exit.Failed,
			stated: "--archive: ",
		},
		"Same": {
			reason: "archives of one cluster are read together", args: []string{"--archive", example, "--archive", example},
			code: exit.Ready,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, append([]string{"targets", "-o", "name"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Stderr, tc.stated) || tc.code != exit.Ready && got.Stdout != "" {
				t.Errorf("%s: exit code %d, want %d and %q\n%s%s", tc.reason, got.Code, tc.code, tc.stated, got.Stdout, got.Stderr)
			}
		})
	}
}
