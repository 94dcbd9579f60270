package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/openshift/update-preflight/runner/record/baselinestore"
)

// A candidate sees the last renewal, waits for the duration of the Lease, and tries again: together less than
// 45 seconds.
func TestTimesOfLeaderElection(t *testing.T) {
	f, err := parse(nil, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	attempt := time.Duration((1 + leaderelection.JitterFactor) * float64(f.retry))
	if sum := attempt + f.lease + attempt; sum >= 45*time.Second {
		t.Errorf("a candidate waits up to %s, want less than 45s", sum)
	}
	if f.renew >= f.lease || attempt >= f.renew {
		t.Errorf("lease %s, renew %s, attempts up to %s apart: each must be shorter than the one before", f.lease, f.renew, attempt)
	}
}

func TestBaselineIsOnByDefault(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want baselinestore.Names
	}{
		"Default": {want: baselinestore.Plain},
		"Off":     {args: []string{"--no-baseline"}, want: baselinestore.None},
		"Digests": {args: []string{"--redact-baseline"}, want: baselinestore.Digests},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parse(tc.args, nil, io.Discard)
			if got := f.baseline(); err != nil || got != tc.want {
				t.Errorf("names %q, error %v; want %q", got, err, tc.want)
			}
		})
	}
	if _, err := parse([]string{"--no-baseline", "--redact-baseline"}, nil, io.Discard); err == nil {
		t.Error("both flags are accepted")
	}
}

// A Subscription of OLM has environment variables, and no arguments.
func TestEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		reason            string
		args, environment []string
		signals           []string
		ahead             int
		err               string
	}{
		"None": {reason: "the defaults", ahead: 3, signals: []string{}},
		"List": {
			reason: "several values", environment: []string{"PREFLIGHT_CONTROLLER_SIGNAL=alert,admission=Warn"}, ahead: 3,
			signals: []string{"alert", "admission=Warn"},
		},
		"Dash": {
			reason:      "another flag begins alike",
			environment: []string{"PREFLIGHT_CONTROLLER_AHEAD_DELAY=1s", "PREFLIGHT_CONTROLLER_AHEAD=1"}, ahead: 1, signals: []string{},
		},
		"Argument": {
			reason: "arguments win, and are not added to", args: []string{"--signal=alert"},
			environment: []string{"PREFLIGHT_CONTROLLER_SIGNAL=clusterOperator"}, ahead: 3, signals: []string{"alert"},
		},
		"Default": {
			reason: "an argument with the value of the default wins, too", args: []string{"--ahead=3"},
			environment: []string{"PREFLIGHT_CONTROLLER_AHEAD=0"}, ahead: 3, signals: []string{},
		},
		"Empty": {reason: "an empty list is one", environment: []string{"PREFLIGHT_CONTROLLER_SIGNAL="}, ahead: 3, signals: []string{}},
		"Service": {
			reason: "variables of the Service update-preflight, and of the API server",
			environment: []string{
				"UPDATE_PREFLIGHT_SERVICE_HOST=172.30.0.9", "UPDATE_PREFLIGHT_PORT=tcp://172.30.0.9:8443",
				"KUBERNETES_SERVICE_HOST=172.30.0.1",
			}, ahead: 3, signals: []string{},
		},
		"Unknown": {
			reason: "a misspelled switch would stay off", environment: []string{"PREFLIGHT_CONTROLLER_SIGNALS=alert"},
			err: "PREFLIGHT_CONTROLLER_SIGNALS stands for no flag",
		},
		"NoName": {
			reason: "the prefix alone", environment: []string{"PREFLIGHT_CONTROLLER_=alert"},
			err: "PREFLIGHT_CONTROLLER_ stands for no flag",
		},
		"Value": {
			reason: "the error names the variable", environment: []string{"PREFLIGHT_CONTROLLER_AHEAD=many"},
			err: "PREFLIGHT_CONTROLLER_AHEAD: invalid argument",
		},
		"Validated": {
			reason: "the rules for arguments hold", environment: []string{"PREFLIGHT_CONTROLLER_SIGNAL=admission=Warn,admission=Deny"},
			err: "both Warn and Deny",
		},
		"Mixed": {
			reason: "the rules hold across both", args: []string{"--uninstall"},
			environment: []string{"PREFLIGHT_CONTROLLER_SIGNAL=alert"}, err: "--signal must not be given",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parse(tc.args, tc.environment, io.Discard)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil || f.ahead != tc.ahead || !cmp.Equal(append([]string{}, f.signals...), tc.signals) {
				t.Errorf("%s: ahead %d, signals %q, error %v; want %d and %q", tc.reason, f.ahead, f.signals, err, tc.ahead, tc.signals)
			}
		})
	}
}

// OLM installs into any namespace.
func TestNamespaceOfPod(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, own string
		args        []string
		err         string
	}{
		"Own": {reason: "the namespace of the manifests", own: "openshift-update-preflight"},
		"Other": {
			reason: "the pod would be ready and never lead", own: "openshift-operators",
			err: `the namespace "openshift-operators", and --namespace is "openshift-update-preflight"`,
		},
		"Both":  {reason: "roles and Lease are in the other one as well", own: "other", args: []string{"--namespace=other"}},
		"None":  {reason: "without leader election no namespace is needed", own: "other", args: []string{"--namespace=", "--leader-elect=false"}},
		"Token": {reason: "a process of an administrator, with the token of a file"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			if tc.own != "" {
				if err := os.WriteFile(filepath.Join(directory, "namespace"), []byte(tc.own), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := parse(tc.args, nil, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.checkNamespace(""); err != nil {
				t.Errorf("without a token: %v", err)
			}
			if err := f.checkNamespace(filepath.Join(directory, "token")); (err != nil) != (tc.err != "") || err != nil &&
				!strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.err, err)
			}
		})
	}
}

func TestConsoleFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Off":       {reason: "the console has no links"},
		"Downloads": {reason: "a mirror", args: []string{"--cli-downloads=https://mirror.example.com/preflight"}},
		"HTTP": {
			reason: "the API of the console accepts https only", args: []string{"--cli-downloads=http://mirror.example.com"},
			want: "--cli-downloads: it must be https://",
		},
		"Both": {
			reason: "all errors are stated", args: []string{"--hosted-runs=0", "--cli-downloads=x"},
			want: "--hosted-runs is 0; it must be 1 to 10\n--cli-downloads: ",
		},
	} {
		_, err := parse(tc.args, nil, io.Discard)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %s: want %q, got %v", name, tc.reason, tc.want, err)
		}
	}
}
