package commands_test

import (
	"strings"
	"testing"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/user"
	"github.com/openshift/update-preflight/test/zoo"
)

func TestUntrustedReleases(t *testing.T) {
	byDefault.use(t)
	newKubelet(t, 0).End()
	for name, tc := range map[string]struct {
		reason string
		// change invalidates the signature of the release.
		change func(*zoo.World)
		want   string
	}{
		"Unsigned": {
			reason: "without a signature", want: "NoSignature",
			change: func(w *zoo.World) { w.State.Signatures = nil },
		},
		"OtherKey": {
			reason: "signed by a key that the cluster does not trust", want: "UnknownKey",
			change: func(w *zoo.World) {
				signatures := w.State.Signatures
				w.Sign(t)
				w.State.Signatures = signatures
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := publish(t, map[string]animal{"healthy": {Plain: true}})
			tc.change(w)
			deleteSignatures(t)
			w.Apply(t)

			result := runPreflight(t, exit.Blocked, "--to", to)
			signature := byName(result)["ReleaseSignature"]
			if signature.Outcome != preflight.Fail || signature.Reason != tc.want {
				t.Errorf("%s: %s (%s), want Fail (%s)", tc.reason, signature.Outcome, signature.Reason, tc.want)
			}
			if result.Verdict.Decision != verdict.Blocked || result.Target.Verified {
				t.Errorf("%s: %s, verified %t; want Blocked, false", tc.reason, result.Verdict.Decision, result.Target.Verified)
			}
			if result.CVO.Accepts == nil || *result.CVO.Accepts || result.CVO.Reason != "RetrievePayload" {
				t.Errorf("%s: cvo %+v, want a rejection with RetrievePayload", tc.reason, result.CVO)
			}
			for _, f := range result.Findings {
				if f.Source == finding.SourceJob {
					t.Errorf("%s: the check %s ran", tc.reason, f.Name)
				}
			}

			forced := runPreflight(t, exit.Blocked, "--to", to, "--force", "--force-reason", "the fix of an outage")
			if !forced.Verdict.Forced || forced.Target.Verified {
				t.Errorf("%s: forced %t, verified %t; want true, false", tc.reason, forced.Verdict.Forced, forced.Target.Verified)
			}
			check := byName(forced)["Zoo.Healthy"]
			signature = byName(forced)["ReleaseSignature"]
			if check.Outcome != preflight.Pass || signature.Bypass != nil || forced.Verdict.Decision != verdict.Blocked {
				t.Errorf("%s: forced run: %+v and %+v; want a pass, and a signature that blocks as it does without force", tc.reason, check, signature)
			}
			testCluster.ExpectNothingLeft(t)
		})
	}
}

// deleteSignatures deletes the signatures in the cluster.
func deleteSignatures(t *testing.T) {
	t.Helper()
	err := testCluster.Client(t).CoreV1().ConfigMaps("openshift-config-managed").DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "release.openshift.io/verification-signatures"})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBadInputCreatesNothing(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"healthy": {Plain: true}})
	reader := user.Bound(t, byDefault.Config,
		rbacv1.Role{Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}}})
	digest := "@sha256:" + strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   []string
	}{
		"Tag": {
			reason: "a signature does not cover a tag",
			args:   []string{"--to-image", byDefault.Registry + "/openshift/release:" + to}, code: exit.BadInput,
			want: []string{"has no digest", "force the run"},
		},
		"Malformed": {
			reason: "an invalid pull spec",
			args:   []string{"--to-image", "Not A Pull Spec" + digest}, code: exit.BadInput, want: []string{"Not A Pull Spec"},
		},
		"ShortDigest": {
			reason: "an invalid digest",
			args:   []string{"--to-image", "quay.io/release@sha256:abc"}, code: exit.BadInput, want: []string{"sha256:abc"},
		},
		"UnknownCheck": {
			reason: "a selector that selects no check is probably a typo",
			args:   []string{"--to", to, "--only", "Zoo.Unicorn"}, code: exit.BadInput, want: []string{"Zoo.Unicorn", "Zoo.Healthy"},
		},
		"Permissions": {
			reason: "one error has the command that prints the roles, and the first of the missing permissions",
			args:   []string{"--to", to, "--as", "stranger"}, code: exit.Failed,
			want: []string{
				"apply the roles that this prints: oc preflight auth run --to " + to + " --bind user:stranger; the user lacks ",
				"list configmaps; ", " more",
			},
		},
		"PermissionToRun": {
			reason: "a user with read access cannot run Jobs",
			args:   []string{"--to", to, "--as", reader}, code: exit.Failed,
			want: []string{
				"create configmaps in namespace openshift-cluster-version", "create leases.coordination.k8s.io in namespace openshift-cluster-version",
				"; and 6 more",
			},
		},
		"APIServer": {
			reason: "an API server that cannot be reached",
			args:   []string{"--to", to, "--server", "https://127.0.0.1:1"}, code: exit.Failed, want: []string{"could not reach the API server"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, append([]string{"run"}, tc.args...)...)
			if got.Code != tc.code {
				t.Errorf("%s: exit code %d, want %d\n%s", tc.reason, got.Code, tc.code, got.Stderr)
			}
			if got.Stdout != "" {
				t.Errorf("%s: a report without a verdict:\n%s", tc.reason, got.Stdout)
			}
			message := errorLine(got.Stderr)
			for _, want := range tc.want {
				if !strings.Contains(message, want) {
					t.Errorf("%s: error %q does not contain %q", tc.reason, message, want)
				}
			}
			testCluster.ExpectNothingLeft(t)
		})
	}
	t.Run("NoClusterVersion", func(t *testing.T) {
		openshift, err := configclient.NewForConfig(byDefault.Config)
		if err != nil {
			t.Fatal(err)
		}
		if err := openshift.ConfigV1().ClusterVersions().Delete(t.Context(), "version", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		got := call(t, "run", "--to", to)
		if got.Code != exit.Failed || !strings.Contains(errorLine(got.Stderr), `no ClusterVersion "version"`) {
			t.Errorf("exit code %d, %q; want %d and the missing ClusterVersion", got.Code, got.Stderr, exit.Failed)
		}
	})
}

// What does not depend on a release is judged also where the release is unknown or cannot be read.
// Nothing is recorded then: a record would end the verdict of an earlier run.
func TestUnreadReleaseIsUndecided(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"healthy": {Plain: true}})
	digest := "@sha256:" + strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   []string
	}{
		"UnknownVersion": {
			reason: "the finding lists the known versions", code: exit.Undecided, args: []string{"--to", "5.2.9"},
			want: []string{"ReleaseSignature (NotListed)", "5.2.9", to},
		},
		"Registry": {reason: "a registry that cannot be reached", code: exit.Blocked, args: []string{
			"--to-image",
			"127.0.0.1:1/release" + digest, "--force", "--force-reason", "the fix of an outage",
		}, want: []string{"ReleasePayload", "127.0.0.1:1"}},
		"NoSuchImage": {
			reason: "an image that does not exist", code: exit.Blocked, args: []string{"--to-image", byDefault.Registry +
				"/openshift/release" + digest, "--force", "--force-reason", "the fix of an outage"},
			want: []string{"ReleasePayload", "openshift/release"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, append([]string{"run"}, tc.args...)...)
			for _, want := range tc.want {
				if !strings.Contains(got.Stdout, want) {
					t.Errorf("%s: %q is not in:\n%s", tc.reason, want, got.Stdout)
				}
			}
			if got.Code != tc.code || !strings.Contains(got.Stdout, "not recorded") {
				t.Errorf("%s: exit code %d, want %d and no record:\n%s", tc.reason, got.Code, tc.code, got.Stdout)
			}
			testCluster.ExpectNothingLeft(t)
		})
	}
}
