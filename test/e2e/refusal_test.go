package e2e_test

import (
	"strings"
	"testing"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestReleasesThatAreNotTrusted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		spoil  func(*world)
		want   string
	}{
		"Unsigned": {
			reason: "it has no signature", want: "NoSignature",
			spoil: func(w *world) { w.State.Signatures = nil },
		},
		"OtherKey": {
			reason: "it is signed by a key that the cluster does not trust", want: "UnknownKey",
			spoil: func(w *world) {
				signatures := w.State.Signatures
				w.Sign(t)
				w.State.Signatures = signatures
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := publish(t, map[string]animal{"healthy": {Ending: "pass"}})
			tc.spoil(w)
			forget(t)
			w.Apply(t)

			decided := reported(t, 3, "--to", to)
			signature := byName(decided)["ReleaseSignature"]
			if signature.Outcome != preflight.Fail || signature.Reason != tc.want {
				t.Errorf("%s: %s (%s), want Fail (%s)", tc.reason, signature.Outcome, signature.Reason, tc.want)
			}
			if decided.Verdict.Decision != verdict.Blocked || decided.Target.Verified {
				t.Errorf("%s: %s, verified %t; want Blocked, false", tc.reason, decided.Verdict.Decision, decided.Target.Verified)
			}
			if decided.CVO.Accepts == nil || *decided.CVO.Accepts || decided.CVO.Reason != "RetrievePayload" {
				t.Errorf("%s: cvo %+v, want that it refuses at RetrievePayload", tc.reason, decided.CVO)
			}
			for _, f := range decided.Findings {
				if f.Source == finding.SourceJob {
					t.Errorf("%s: %s was launched", tc.reason, f.Name)
				}
			}

			forced := reported(t, 0, "--to", to, "--force")
			if !forced.Verdict.Forced || forced.Target.Verified {
				t.Errorf("%s: forced %t, verified %t; want true, false", tc.reason, forced.Verdict.Forced, forced.Target.Verified)
			}
			animal := byName(forced)["Zoo.Animal"]
			signature = byName(forced)["ReleaseSignature"]
			if animal.Outcome != preflight.Pass || signature.Bypass == nil || signature.Bypass.By != finding.ByForce {
				t.Errorf("%s: forced run has %+v and %+v; want a pass, and a signature that is bypassed by force", tc.reason, animal, signature)
			}
			house.ExpectNothingLeft(t)
		})
	}
}

// forget removes the signatures that the cluster keeps.
func forget(t *testing.T) {
	t.Helper()
	err := house.Client(t).CoreV1().ConfigMaps("openshift-config-managed").DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "release.openshift.io/verification-signatures"})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBadInputCreatesNothing(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	house.Kubectl(t, "create", "clusterrole", "reader", "--verb=get,list,watch", "--resource=*.*")
	house.Kubectl(t, "create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=reader")
	digest := "@sha256:" + strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   []string
	}{
		"Tag": {
			reason: "a tag is not what was verified",
			args:   []string{"--to-image", local.Registry + "/openshift/release:" + to}, code: 2, want: []string{"has no digest", "force the run"},
		},
		"Malformed": {
			reason: "a pull spec that is none",
			args:   []string{"--to-image", "Not A Pull Spec" + digest}, code: 2, want: []string{"Not A Pull Spec"},
		},
		"ShortDigest": {
			reason: "a digest that is none",
			args:   []string{"--to-image", "quay.io/release@sha256:abc"}, code: 2, want: []string{"sha256:abc"},
		},
		"UnknownVersion": {
			reason: "an unknown version; the error lists the known ones",
			args:   []string{"--to", "4.99.0"}, code: 2, want: []string{"4.99.0", to},
		},
		"UnknownCheck": {
			reason: "a selector that selects nothing is a slip of the pen",
			args:   []string{"--to", to, "--only", "Zoo.Unicorn"}, code: 2, want: []string{"Zoo.Unicorn", "Zoo.Healthy"},
		},
		"Registry": {
			reason: "a registry that cannot be reached",
			args:   []string{"--to-image", "127.0.0.1:1/release" + digest, "--force"}, code: 1, want: []string{"127.0.0.1:1"},
		},
		"NoSuchImage": {
			reason: "an image that is not there",
			args:   []string{"--to-image", local.Registry + "/openshift/release" + digest, "--force"}, code: 1, want: []string{"openshift/release"},
		},
		"Permissions": {
			reason: "all permissions that are missing are named at once",
			args:   []string{"--to", to, "--as", "stranger"}, code: 1,
			want: []string{
				"get clusterversions.config.openshift.io", "release-verification in namespace openshift-config-managed",
				"watch jobs.batch", "get pods/log",
			},
		},
		"PermissionToRun": {
			reason: "a user with read access may not run Jobs",
			args:   []string{"--to", to, "--as", "reader"}, code: 1,
			want: []string{
				"create configmaps in namespace openshift-cluster-version", "create leases.coordination.k8s.io in namespace openshift-cluster-version",
				"create jobs.batch in namespace " + zooNamespace, "delete jobs.batch in namespace " + zooNamespace,
			},
		},
		"APIServer": {
			reason: "an API server that cannot be reached",
			args:   []string{"--to", to, "--server", "https://127.0.0.1:1"}, code: 1, want: []string{"could not reach the API server"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, append([]string{"run"}, tc.args...)...)
			if got.Code != tc.code {
				t.Errorf("%s: exit code %d, want %d\n%s", tc.reason, got.Code, tc.code, got.Stderr)
			}
			if got.Stdout != "" {
				t.Errorf("%s: there is a report, though there is no verdict:\n%s", tc.reason, got.Stdout)
			}
			complaint := errorLine(got.Stderr)
			for _, want := range tc.want {
				if !strings.Contains(complaint, want) {
					t.Errorf("%s: %q does not say %q", tc.reason, complaint, want)
				}
			}
			house.ExpectNothingLeft(t)
		})
	}
	t.Run("NoClusterVersion", func(t *testing.T) {
		openshift, err := configclient.NewForConfig(local.Config)
		if err != nil {
			t.Fatal(err)
		}
		if err := openshift.ConfigV1().ClusterVersions().Delete(t.Context(), "version", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		got := call(t, "run", "--to", to)
		if got.Code != 1 || !strings.Contains(errorLine(got.Stderr), `no ClusterVersion "version"`) {
			t.Errorf("exit code %d, %q; want 1, and that there is no ClusterVersion", got.Code, got.Stderr)
		}
	})
}

// errorLine is the one line in which the program says why there is no verdict.
func errorLine(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "error: ") {
			return line
		}
	}
	return ""
}
