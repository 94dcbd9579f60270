package flagset_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// call is a call of the program, and what is promised of it.
type call struct {
	reason string
	args   []string
	code   int
	// stated is a part of standard error.
	stated string
}

// verify calls the program for each row. What is wrong usage sends no request to the cluster.
func verify(t *testing.T, rows map[string]call) {
	t.Helper()
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1000)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path
				http.Error(w, "", http.StatusNotFound)
			}))
			defer server.Close()
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			got := program.Call(t, append(tc.args, "--server", server.URL)...)
			if got.Code != tc.code || !strings.Contains(got.Stderr, tc.stated) {
				t.Errorf("%s: exit code %d, want %d and %q\n%s%s", tc.reason, got.Code, tc.code, tc.stated, got.Stdout, got.Stderr)
			}
			if got.Stdout != "" {
				t.Errorf("%s: an error writes to standard output:\n%s", tc.reason, got.Stdout)
			}
			if tc.code == exit.BadInput && len(asked) > 0 {
				t.Errorf("%s: the cluster was asked for %s", tc.reason, <-asked)
			}
		})
	}
}

// writeFiles writes files into a directory, and returns its path.
func writeFiles(t *testing.T, contents map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// A file that a flag names is read, and a value is validated, before a request is sent.
func TestValues(t *testing.T) {
	directory := writeFiles(t, map[string]string{
		"text": "no key", "graph.json": "{", "empty.json": `{"nodes":[],"edges":[]}`, "job.txt": "no manifest",
		"expired.yaml": "apiVersion: preflight.openshift.io/v1alpha1\nkind: AcceptedRisks\nrisks: [{risk: RiskA, reason: r, owner: o, " +
			"expires: soon}]\n",
		"unknown.yaml": "apiVersion: preflight.openshift.io/v1alpha1\nkind: AcceptedRisks\nrisks: [{risk: RiskA, reason: r, owner: o, " +
			"until: 2027-01-01}]\n",
		"versions.yaml": "apiVersion: preflight.openshift.io/v1alpha1\nkind: AcceptedRisks\nrisks: [{risk: RiskA, reason: r, owner: o, " +
			"versions: '>='}]\n",
	})
	path := func(name string) string { return filepath.Join(directory, name) }
	fifo := path("pipe")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) []string { return append([]string{"run", "--to", "4.19.1"}, args...) }
	verify(t, map[string]call{
		"Version": {
			reason: "a version has three numbers", args: []string{"run", "--to", "4.19"}, code: exit.BadInput,
			stated: `the version "4.19" is not a semantic version like 4.19.3`,
		},
		"VersionPrefix": {
			reason: "the right one is proposed", args: []string{"status", "--to", "v4.19.1"}, code: exit.BadInput,
			stated: "write --to 4.19.1",
		},
		"Accept": {
			reason: "the name of a finding begins with a capital letter", args: run("--accept", "risk"), code: exit.BadInput,
			stated: `illegal risk "risk"`,
		},
		"Expires": {
			reason: "the error names the file and the entry", args: run("--accept-file", path("expired.yaml")), code: exit.BadInput,
			stated: `expired.yaml": entry 1 ("RiskA")`,
		},
		"Field": {
			reason: "a misspelled field would be no limit", args: run("--accept-file", path("unknown.yaml")), code: exit.BadInput,
			stated: "until",
		},
		"Versions": {
			reason: "a range that none is in", args: run("--accept-file", path("versions.yaml")), code: exit.BadInput,
			stated: `entry 1 ("RiskA")`,
		},
		"Directory": {reason: "a directory is no file", args: run("--accept-file", directory), code: exit.BadInput, stated: "--accept-file"},
		"Since": {
			reason: "requests before that time are of a client that was fixed", args: run("--fixed-client", "a", "--since", "soon"),
			code: exit.BadInput, stated: "--",
		},
		"Prometheus": {
			reason: "a scheme that none has", args: []string{"status", "--prometheus", "ftp://p.example.com"}, code: exit.BadInput,
			stated: "--prometheus",
		},
		"Attached": {
			reason: "no request is sent before", args: []string{"attach", "--prometheus", "ftp://p.example.com"},
			code: exit.BadInput, stated: "--prometheus",
		},
		"Graph": {reason: "the error names the file", args: []string{
			"plan", "--to", "4.19.1", "--from", "4.18.3", "--graph",
			path("graph.json"),
		}, code: exit.BadInput, stated: "graph is not a JSON document of an update service"},
		"EmptyGraph": {reason: "a graph without releases is the wrong file", args: []string{
			"plan", "--to", "4.19.1", "--from", "4.18.3",
			"--graph", path("empty.json"),
		}, code: exit.BadInput, stated: "the update graph empty has no release"},
		"Arch": {reason: "an architecture that no release has", args: []string{
			"plan", "--to", "4.19.1", "--from", "4.18.3", "--arch",
			"sparc",
		}, code: exit.BadInput, stated: `--arch: "sparc" is not one of amd64`},
		"Minor": {
			reason: "a minor version has two numbers", args: []string{"plan", "--to-minor", "4.19.1"}, code: exit.BadInput,
			stated: "--to-minor",
		},
		"Hosted": {
			reason: "a hosted cluster has a namespace", args: []string{"targets", "--hosted-cluster", "example"},
			code: exit.BadInput, stated: "it must be NAMESPACE/NAME",
		},
		"HostedParts": {
			reason: "and one name", args: []string{"status", "--hosted-cluster", "clusters/a/b"}, code: exit.BadInput,
			stated: "it must be NAMESPACE/NAME",
		},
		"Interval": {
			reason: "an API server is not flooded", args: []string{"history", "--watch", "--interval", "1s"}, code: exit.BadInput,
			stated: "--interval=1s: it must be 2s to 1h0m0s",
		},
		"Limit": {
			reason: "fewer than none", args: []string{"history", "--limit", "-3"}, code: exit.BadInput,
			stated: "--limit=-3: it must not be negative; 0 lists all",
		},
		"Color": {
			reason: "the values are named", args: []string{"status", "--color", "blue"}, code: exit.BadInput,
			stated: "--color=blue: it must be one of auto, always, never",
		},
		"Report": {
			reason: "a format comes before the file", args: []string{"status", "--report", path("report.json")},
			code: exit.BadInput, stated: "is not FORMAT=FILE, such as json=report.json",
		},
		"ReportTwice": {reason: "one file has one document", args: []string{
			"status", "--report", "json=" + path("r"), "--report",
			"yaml=" + path("r"),
		}, code: exit.BadInput, stated: "the file is named twice"},
		"ReportPipe": {
			reason: "a file is replaced, and a pipe cannot be", args: []string{"status", "--report", "json=" + fifo},
			code: exit.BadInput, stated: "is not a regular file",
		},
		"CacheFile": {
			reason: "a file is no directory",
			args:   []string{"plan", "--to", "4.19.1", "--from", "4.18.3", "--cache-dir", path("text")}, code: exit.BadInput, stated: "--cache-dir",
		},
		"Argument": {reason: "a target is a flag", args: []string{"run", "latest"}, code: exit.BadInput, stated: "write --to-latest"},
	})
}

// What is kept in the reports of several formats is the document of standard output, and a file that exists is replaced
// as a whole: no reader sees a part of it.
func TestReportsAreReplaced(t *testing.T) {
	server := apiserver.Start(t)
	if err := openshift.Apply(t.Context(), server.Config(), records.State()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", server.Kubeconfig)
	directory := writeFiles(t, map[string]string{"targets.json": "before"})
	open, err := os.Open(filepath.Join(directory, "targets.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	got := program.Call(t, "targets", "--quiet", "-o", "json", "--report", "json="+filepath.Join(directory, "targets.json"), "--report",
		"html="+filepath.Join(directory, "targets.html"))
	if got.Code != exit.Ready {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	if text, err := io.ReadAll(open); err != nil || string(text) != "before" {
		t.Errorf("a reader of the former file reads %q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(directory, "targets.json")); err != nil || string(text) != got.Stdout {
		t.Errorf("the file differs from standard output: %v", err)
	}
	entries, err := os.ReadDir(directory)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files are left, want 2: %v", len(entries), err)
	}
}

// A list is bounded, and states how to see the rest.
func TestLimit(t *testing.T) {
	server := apiserver.Start(t)
	if err := openshift.Apply(t.Context(), server.Config(), records.State()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", server.Kubeconfig)
	for name, tc := range map[string]struct {
		reason string
		args   []string
		rows   int
		hint   bool
	}{
		"Two":  {reason: "the first two of ten", args: []string{"--limit", "2"}, rows: 2, hint: true},
		"All":  {reason: "0 is no limit", args: []string{"--limit", "0"}, rows: 10},
		"Flag": {reason: "the same in words", args: []string{"--all"}, rows: 10},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, append([]string{"targets", "--quiet"}, tc.args...)...)
			rows := len(regexp.MustCompile(`(?m)^4\.19\.\d +`).FindAllString(got.Stdout, -1))
			if rows != tc.rows || strings.Contains(got.Stdout, "--limit 0") != tc.hint {
				t.Errorf("%s: %d rows, want %d; hint wanted: %t\n%s", tc.reason, rows, tc.rows, tc.hint, got.Stdout)
			}
		})
	}
}

// With --watch a document is written again when it has changed, an error in between is reported, and Ctrl-C is none.
func TestWatch(t *testing.T) {
	server := apiserver.Start(t)
	if err := openshift.Apply(t.Context(), server.Config(), records.State()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", server.Kubeconfig)
	in := records.In(t, server.Config())
	first := in.Detached('1', []string{"Etcd.Quorum"})
	watching := program.Start(t, "history", "--watch", "--interval", "2s", "-o", "name")
	watching.AwaitStdout("preflight/" + first)
	second := in.Detached('2', []string{"Etcd.Quorum"})
	watching.AwaitStdout("preflight/" + second)
	watching.Interrupt()
	got := watching.Wait()
	if got.Code != exit.Ready || strings.Count(got.Stdout, "preflight/"+second) != 1 {
		t.Errorf("exit code %d, %q: want the second document once", got.Code, got.Stdout)
	}
}
