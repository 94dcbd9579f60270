package running_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/offer"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// newCluster is a cluster that the program reaches, with a release of these manifests.
func newCluster(t *testing.T, manifests map[string]string) *offer.Cluster {
	t.Helper()
	c := offer.Start(t, manifests)
	t.Setenv("KUBECONFIG", c.Kubeconfig)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return c
}

// run calls "run" with a monitoring without alerts.
func run(t *testing.T, c *offer.Cluster, args ...string) program.Result {
	t.Helper()
	return program.Call(t, append([]string{"run", "--prometheus", c.Monitoring, "--quiet"}, args...)...)
}

// reportOf is the report that a command has printed.
func reportOf(t *testing.T, got program.Result) report.Report {
	t.Helper()
	var decided report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &decided); err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", got.Code, err, got.Stdout, got.Stderr)
	}
	return decided
}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*offer.Cluster)
		args   []string
		code   int
		// shown are parts of standard output, and stated of standard error.
		shown, stated []string
		// recorded is how many runs are recorded then.
		recorded int
	}{
		"Ready": {
			reason: "nothing speaks against the update", args: []string{"--to", offer.To}, code: exit.Ready, recorded: 1,
			shown: []string{"READY  4.18.3 -> 4.19.1: ", "Signature  verified, signed by ", "Next: $ oc adm upgrade --to 4.19.1\n"},
		},
		"DryRun": {
			reason: "a run is what who asks for a dry run wants, and it is recorded", args: []string{
				"--to", offer.To, "--dry-run", "-o",
				"jsonpath={.verdict.decision}",
			}, code: exit.Ready, recorded: 1, shown: []string{"Ready"},
			stated: []string{"--dry-run: a run starts no update, and changes nothing but its own Jobs, their temporary identities, its " +
				"record and the key of the records\n"},
		},
		"Running": {
			reason: "the release that the cluster runs is no update: nothing is verified or recorded",
			args:   []string{"--to", offer.From}, code: exit.BadInput, stated: []string{"the cluster already runs " + offer.From},
		},
		"Expression": {
			reason: "nothing is run for an expression that is wrong", args: []string{"--to", offer.To, "-o", "jsonpath={.verdict"},
			code: exit.BadInput, stated: []string{"jsonpath={.verdict", "unclosed action"},
		},
		"Latest": {
			reason: "the newest release is the only one", args: []string{"--to-latest", "-o", "short"}, code: exit.Ready, recorded: 1,
			shown: []string{"Verdict: Ready, 4.18.3 -> 4.19.1, run "},
		},
		"Gate": {
			reason: "an administrator has to acknowledge", code: exit.Blocked, recorded: 1, args: []string{"--to", offer.To},
			change: func(c *offer.Cluster) { c.State.Gates["ack-4.18-api"] = "Migrate the clients." },
			shown:  []string{"BLOCKED  ", "AdminAck-ack-4.18-api (AdminAckRequired)", "Migrate the clients.", "oc preflight ack ack-4.18-api"},
		},
		"Accepted": {
			reason: "a gate cannot be accepted", code: exit.Blocked, recorded: 1,
			args:   []string{"--to", offer.To, "--accept", "AdminAck-ack-4.18-api"},
			change: func(c *offer.Cluster) { c.State.Gates["ack-4.18-api"] = "Migrate the clients." },
			shown:  []string{"AdminAck-ack-4.18-api (AdminAckRequired)", "AcceptanceWithoutEffect (NotAcceptable)"},
		},
		"Forced": {
			reason: "who forces states why, and scripts see that it was", code: exit.Blocked, recorded: 1,
			args:   []string{"--to", offer.To, "--force", "--force-reason", "an outage"},
			change: func(c *offer.Cluster) { c.State.Gates["ack-4.18-api"] = "Migrate the clients." },
			shown:  []string{"BLOCKED (FORCED)", "an outage"},
		},
		"Unsigned": {
			reason: "no check of an unsigned release is run", code: exit.Blocked, recorded: 1, args: []string{"--to", offer.To},
			change: func(c *offer.Cluster) { c.State.Signatures = nil },
			shown:  []string{"ReleaseSignature (NoSignature)", "NOT VERIFIED"},
		},
		"NotListed": {
			reason: "a release that is not known is not recorded: its record would end an earlier verdict", code: exit.Undecided,
			args: []string{"--to", "4.19.9"}, shown: []string{"ReleaseSignature (NotListed)", "4.19.9", "not recorded"},
		},
		"Unknown": {
			reason: "the pull spec has no digest", code: exit.BadInput, args: []string{"--to-image", "quay.io/release:4.19.1"},
			stated: []string{"quay.io/release:4.19.1", "has no digest"},
		},
		"NoTarget": {
			reason: "a release has to be named", code: exit.BadInput,
			stated: []string{"no target release is named; the cluster knows 4.19.1"},
		},
		"Checks": {
			reason: "a directory that does not exist", code: exit.BadInput, args: []string{"--to", offer.To, "--checks", "./missing"},
			stated: []string{"--checks", "missing"},
		},
		"Alert": {
			reason: "a URL that no Prometheus can have", code: exit.BadInput,
			args: []string{"--to", offer.To, "--prometheus", "ftp://p.example.com"}, stated: []string{"--prometheus"},
		},
		"Only": {
			reason: "a name that selects no check is probably mistyped", code: exit.BadInput,
			args: []string{"--to", offer.To, "--only", "Zoo.Unicorn"}, stated: []string{"Zoo.Unicorn"},
		},
		"Interrupt": {reason: "an effect of Ctrl-C that does not exist", code: exit.BadInput, args: []string{
			"--to", offer.To, "--on-interrupt",
			"pray",
		}, stated: []string{"--on-interrupt=pray: it must be one of ask, clean, detach"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil)
			if tc.change != nil {
				tc.change(c)
				if name == "Unsigned" {
					c.Remove(t, "openshift-config-managed", "signatures")
				}
				c.Apply()
			}
			got := run(t, c, tc.args...)
			if got.Code != tc.code {
				t.Fatalf("%s: exit code %d, want %d\n%s%s", tc.reason, got.Code, tc.code, got.Stdout, got.Stderr)
			}
			for _, part := range tc.shown {
				if !strings.Contains(got.Stdout, part) {
					t.Errorf("%s: the report lacks %q:\n%s", tc.reason, part, got.Stdout)
				}
			}
			for _, part := range tc.stated {
				if !strings.Contains(got.Stderr, part) {
					t.Errorf("%s: the error lacks %q:\n%s", tc.reason, part, got.Stderr)
				}
			}
			if tc.code == exit.BadInput && got.Stdout != "" {
				t.Errorf("%s: a report about bad input:\n%s", tc.reason, got.Stdout)
			}
			stored, err := records.In(t, c.Config()).Store.List(t.Context())
			if err != nil || len(stored) != tc.recorded {
				t.Errorf("%s: %d runs are recorded, want %d: %v", tc.reason, len(stored), tc.recorded, err)
			}
		})
	}
}

// A run without Jobs writes its record and the Lease that holds it, and a request that is refused or only lists writes
// nothing.
func TestWhatARunWrites(t *testing.T) {
	c := newCluster(t, nil)
	before := len(c.Writes())
	for _, args := range [][]string{
		{"--to", "4.19.9"},
		{"--to", offer.To, "--only", "Zoo.Unicorn"},
		{"--to-image", "quay.io/release:latest"},
	} {
		run(t, c, args...)
	}
	if wrote := c.Writes()[before:]; len(wrote) > 0 {
		t.Errorf("a request without a verdict has written %q", wrote)
	}
	if got := run(t, c, "--to", offer.To); got.Code != exit.Ready {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	for _, write := range c.Writes()[before:] {
		_, of, _ := strings.Cut(write, " ")
		resource, name, _ := strings.Cut(of, " ")
		if !slices.Contains([]string{"leases", "configmaps", "secrets"}, resource) ||
			!strings.HasPrefix(name, "openshift-cluster-version/preflight-") {
			t.Errorf("a run without Jobs has written %q", write)
		}
	}
}

// A user without a permission gets the command that prints the roles, and nothing is written.
func TestRunOfAStranger(t *testing.T) {
	c := newCluster(t, nil)
	c.Deny(func(user string, request apiserver.Request) bool {
		return user == "stranger" && !slices.Contains([]string{"get", "list", "watch"}, request.Verb)
	})
	before := len(c.Writes())
	got := run(t, c, "--to", offer.To, "--as", "stranger")
	if want := "oc preflight auth run --to " + offer.To + " --bind user:stranger"; got.Code != exit.Failed || got.Stdout != "" ||
		!strings.Contains(got.Stderr, want) {
		t.Errorf("exit code %d\n%s%s\nwant %s", got.Code, got.Stdout, got.Stderr, want)
	}
	if wrote := c.Writes()[before:]; len(wrote) > 0 {
		t.Errorf("a user who may not run has written %q", wrote)
	}
}

// The documents for scripts are the same data, each that the record has.
func TestFormatsOfARun(t *testing.T) {
	c := newCluster(t, nil)
	files := t.TempDir()
	path := func(name string) string { return filepath.Join(files, name) }
	got := run(t, c, "--to", offer.To, "-o", "json", "--report", "yaml="+path("report.yaml"), "--report", "junit="+path("junit.xml"),
		"--report", "markdown="+path("report.md"))
	decided := reportOf(t, got)
	if got.Code != exit.Ready || decided.Kind != report.Kind || decided.APIVersion != report.APIVersion ||
		decided.Verdict.Decision != "Ready" || decided.Run.Phase != report.PhaseComplete {
		t.Errorf("exit code %d, %+v", got.Code, decided.Run)
	}
	decoder := json.NewDecoder(strings.NewReader(got.Stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report.Report{}); err != nil {
		t.Errorf("the document has a field that the type of its schema has not: %v", err)
	}
	text, err := os.ReadFile(path("report.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var same report.Report
	if err := yaml.Unmarshal(text, &same); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decided, same); diff != "" {
		t.Errorf("-JSON +YAML:\n%s", diff)
	}
	for name, part := range map[string]string{"junit.xml": `name="preflight.Verdict"`, "report.md": "**Ready**"} {
		if text, err := os.ReadFile(path(name)); err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s lacks %s: %v\n%s", name, part, err, text)
		}
	}
	stored, err := records.In(t, c.Config()).Store.Get(t.Context(), decided.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	var recorded report.Report
	if err := json.Unmarshal(stored.Report, &recorded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decided.Findings, recorded.Findings); diff != "" || recorded.Verdict.Decision != decided.Verdict.Decision {
		t.Errorf("%s is recorded; -printed +recorded:\n%s", recorded.Verdict.Decision, diff)
	}
}

// A report that cannot be written is found out before the run: nothing is run, written or left.
func TestReportThatCannotBeWritten(t *testing.T) {
	c := newCluster(t, nil)
	before := len(c.Writes())
	directory := t.TempDir()
	kept := filepath.Join(directory, "kept.json")
	if err := os.WriteFile(kept, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := run(t, c, "--to", offer.To, "--report", "json="+kept, "--report", "yaml="+filepath.Join(directory, "missing", "report.yaml"))
	if got.Code != exit.BadInput || !strings.Contains(got.Stderr, "missing/report.yaml") || got.Stdout != "" {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	entries, err := os.ReadDir(directory)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files remain, want the one that existed: %v", len(entries), err)
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "before" {
		t.Errorf("the other file was replaced by %q: %v", text, err)
	}
	if wrote := c.Writes()[before:]; len(wrote) > 0 {
		t.Errorf("the cluster was written to: %q", wrote)
	}
}

// A signed verdict is verified by those who have the public key, for this cluster and release only.
func TestSignedRun(t *testing.T) {
	c := newCluster(t, nil)
	private, public, signed := writeKeys(t)
	if got := run(t, c, "--to", offer.To, "--sign", private, "--signed-verdict", signed); got.Code != exit.Ready {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		result string
	}{
		"Valid": {
			reason: "the verdict of the run", args: []string{"--cluster", openshift.ClusterID, "--to", offer.To}, code: exit.Ready,
			result: "Valid",
		},
		"Digest": {
			reason: "the release by its digest", args: []string{"--to", c.Image[strings.Index(c.Image, "@")+1:]}, code: exit.Ready,
			result: "Valid",
		},
		"OtherCluster": {
			reason: "a verdict on another cluster permits nothing here", args: []string{"--cluster", "other"}, code: 6,
			result: "OtherCluster",
		},
		"OtherRelease": {
			reason: "a verdict on another release permits nothing here", args: []string{"--to", "4.19.2"}, code: 7,
			result: "OtherRelease",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, append([]string{"verify-verdict", signed, "--key", public, "-o", "json"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Stdout, `"result": "`+tc.result+`"`) {
				t.Errorf("%s: exit code %d, want %d\n%s%s", tc.reason, got.Code, tc.code, got.Stdout, got.Stderr)
			}
		})
	}
}

// writeKeys writes a pair of keys, and returns the path of a file for the verdict as well.
func writeKeys(t *testing.T) (private, public, signed string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	known, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	private, public, signed = filepath.Join(directory, "cosign.key"), filepath.Join(directory, "cosign.pub"),
		filepath.Join(directory, "verdict.json")
	for path, block := range map[string]*pem.Block{private: {Type: "PRIVATE KEY", Bytes: secret}, public: {Type: "PUBLIC KEY", Bytes: known}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return private, public, signed
}

// The verdict of a run ends when a newer run of the same target has ended.
func TestRunAgain(t *testing.T) {
	c := newCluster(t, nil)
	first := reportOf(t, run(t, c, "--to", offer.To, "-o", "json"))
	if got := program.Call(t, "status", first.Run.ID, "--prometheus", c.Monitoring); got.Code != exit.Ready {
		t.Errorf("exit code %d before the next run\n%s", got.Code, got.Stdout)
	}
	records.In(t, c.Config()).NextSecond()
	second := reportOf(t, run(t, c, "--to", offer.To, "-o", "json"))
	got := program.Call(t, "status", first.Run.ID, "--prometheus", c.Monitoring)
	if got.Code != exit.Undecided || !strings.Contains(got.Stdout, "run "+second.Run.ID+" of the same target is newer") {
		t.Errorf("exit code %d after the next run\n%s", got.Code, got.Stdout)
	}
}
