package guard_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/test/await"
)

// response is the response of the API server to a request.
type response struct {
	denied   string
	warnings []string
}

// warnings records the warnings of responses.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

// request sends oc's patch, which is not stored.
func request(ctx context.Context, t *testing.T, patch string, subresources ...string) response {
	t.Helper()
	received := &warnings{}
	warned := rest.CopyConfig(config)
	warned.WarningHandlerWithContext = received
	_, err := configclient.NewForConfigOrDie(warned).ConfigV1().ClusterVersions().
		Patch(ctx, "version", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
	switch {
	case err == nil:
		return response{warnings: received.texts}
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		return response{denied: err.Error(), warnings: received.texts}
	case ctx.Err() != nil:
		return response{}
	}
	t.Fatal(err)
	return response{}
}

// objects reports whether the policy objects to a request, in either mode.
func (a response) objects() bool {
	return a.denied != "" || slices.ContainsFunc(a.warnings,
		func(text string) bool { return strings.Contains(text, "the update preflight does not allow") })
}

func admission(t *testing.T, mode guard.Mode, now time.Time) *guard.Switch {
	t.Helper()
	made, err := guard.Admission(client(), mode, at(now))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const (
	blockedRequest = `{"spec":{"desiredUpdate":{"version":"4.18.5"}}}`
	readyRequest   = `{"spec":{"desiredUpdate":{"version":"4.18.4"}}}`
)

// admitting applies the policy in a mode, and returns when the API server uses it and
// the verdicts: 4.18.4 is Ready, 4.18.5 Blocked, 4.18.6 Undecided, and 4.18.7 has no
// verdict.
func admitting(t *testing.T, mode guard.Mode) *guard.Switch {
	t.Helper()
	made := admission(t, mode, start)
	apply(t, made, verdict("4", "4.18.4", "Ready"), verdict("5", "4.18.5", "Blocked"), verdict("6", "4.18.6", "Undecided"))
	clusterVersion(t, nil, updates()...)
	await.Until(t, "the API server uses the policy", func(ctx context.Context) bool {
		refused := request(ctx, t, blockedRequest)
		return refused.objects() && (refused.denied != "") == (mode == guard.Deny) && !request(ctx, t, readyRequest).objects()
	})
	return made
}

func updates() []configv1.Release {
	var available []configv1.Release
	for _, digit := range []string{"4", "5", "6", "7"} {
		available = append(available, configv1.Release{Version: "4.18." + digit, Image: image(digit)})
	}
	return available
}

func TestAdmission(t *testing.T) {
	blocked := &configv1.Update{Version: "4.18.5", Image: image("5")}
	forced := &configv1.Update{Version: "4.18.5", Image: image("5"), Force: true}
	desired := func(update string) string { return `{"spec":{"desiredUpdate":` + update + `}}` }
	rows := map[string]struct {
		reason string
		before *configv1.Update
		// noUpdates is true for a cluster that knows no updates.
		noUpdates bool
		patch     string
		// refused is a part of the message; empty where the request is allowed.
		refused string
		// command shows the report of the target; with a version, "--to VERSION", if empty.
		command string
	}{
		"ReadyVersion": {reason: "the version is resolved to a digest that is Ready", patch: readyRequest},
		"ReadyImage":   {reason: "the digest is Ready", patch: desired(`{"image":"` + image("4") + `"}`)},
		"Mirror": {
			reason: "a mirror has the same digest",
			patch:  desired(`{"image":"mirror.example.com:5000/release@` + digest("4") + `"}`),
		},
		"BlockedVersion": {
			reason: "the verdict is Blocked", patch: blockedRequest, refused: "4.18.5: its verdict is Blocked",
			command: "oc preflight status --to 4.18.5. ",
		},
		"BlockedImage": {
			reason: "the verdict is Blocked", patch: desired(`{"version":"4.18.5","image":"` + image("5") + `"}`),
			refused: "its verdict is Blocked",
		},
		"Undecided": {reason: "Undecided is not Ready", patch: desired(`{"version":"4.18.6"}`), refused: "its verdict is Undecided"},
		"NoVerdict": {
			reason: "without a verdict nothing is Ready", patch: desired(`{"version":"4.18.7"}`),
			refused: "its verdict is missing",
		},
		"Tag": {
			reason: "a tag may be another image later", patch: desired(`{"image":"quay.io/release:4.18.4"}`),
			refused: "the image has no digest", command: "oc preflight status --to-image quay.io/release:4.18.4.",
		},
		"Digest": {
			reason: "a digest names the target where no version does", patch: desired(`{"image":"` + image("5") + `"}`),
			refused: "its verdict is Blocked", command: "oc preflight status --to-image " + image("5") + ".",
		},
		"Force": {
			reason: "force bypasses the policy",
			patch:  desired(`{"version":"4.18.5","image":"` + image("5") + `","force":true}`),
		},
		"ForceTakenBack": {
			reason: "the same target is requested without force", before: forced, patch: desired(`{"force":false}`),
			refused: "its verdict is Blocked",
		},
		"Unchanged": {
			reason: "another field changes, and the target was selected before", before: blocked,
			patch: `{"spec":{"channel":"stable-4.18"}}`,
		},
		"Cleared":        {reason: "no update is requested", before: blocked, patch: `{"spec":{"desiredUpdate":null}}`},
		"AcceptRisks":    {reason: "accepted risks alone select nothing", patch: desired(`{"acceptRisks":[{"name":"RiskA"}]}`)},
		"AcceptRisksToo": {reason: "the target was selected before", before: blocked, patch: desired(`{"acceptRisks":[{"name":"RiskA"}]}`)},
		"RunningImage": {
			reason: "the request selects the running release", before: blocked,
			patch: desired(`{"version":null,"image":"` + image("a") + `"}`),
		},
		"RunningVersion": {
			reason: "the request selects the running release", before: blocked,
			patch: desired(`{"version":"4.18.3","image":null}`),
		},
		"UnknownVersion": {
			reason: "CVO would start the update once it is offered", patch: desired(`{"version":"4.18.99"}`),
			refused: "the version is no available update",
		},
		"NoUpdates": {
			reason: "a version cannot be resolved", noUpdates: true, patch: readyRequest,
			refused: "the version is no available update",
		},
		"NoUpdatesImage": {reason: "a digest needs no updates", noUpdates: true, patch: desired(`{"image":"` + image("4") + `"}`)},
		"Architecture": {
			reason: "the running version of another architecture is another image",
			patch:  desired(`{"version":"4.18.3","architecture":"Multi"}`), refused: "the version is no available update",
		},
		"AnotherTarget": {
			reason: "the target changes from one that is Blocked to one that is Ready", before: blocked,
			patch: desired(`{"version":"4.18.4","image":"` + image("4") + `"}`),
		},
		"ForceOfThePast": {
			reason: "a forced update is retargeted without force", before: forced,
			patch: desired(`{"version":"4.18.7","image":"` + image("7") + `","force":false}`), refused: "its verdict is missing",
		},
		"VersionThenImage": {
			reason: "the image of a selected version is another one", before: &configv1.Update{Version: "4.18.4"},
			patch: desired(`{"image":"` + image("5") + `"}`), refused: "its verdict is Blocked",
			command: "oc preflight status --to-image " + image("5") + ".",
		},
	}
	for _, mode := range []guard.Mode{guard.Warn, guard.Deny} {
		t.Run(string(mode), func(t *testing.T) {
			admitting(t, mode)
			for name, tc := range rows {
				t.Run(name, func(t *testing.T) {
					available := updates()
					if tc.noUpdates {
						available = nil
					}
					clusterVersion(t, tc.before, available...)
					got := request(t.Context(), t, tc.patch)
					text := got.denied + strings.Join(got.warnings, "\n")
					switch {
					case tc.refused == "" && (got.denied != "" || got.objects()):
						t.Errorf("%s: %s", tc.reason, text)
					case tc.refused != "" && (!strings.Contains(text, tc.refused) || (got.denied != "") != (mode == guard.Deny)):
						t.Errorf("%s: want %q in %q, denied: %q", tc.reason, tc.refused, text, got.denied)
					case tc.refused != "" && !strings.Contains(text, cmp.Or(tc.command, "oc preflight status --to 4.18.")):
						t.Errorf("%s: no command for the target in %q", tc.reason, text)
					}
				})
			}
		})
	}
}

// CVO writes only the status, which the policy does not match.
func TestAdmissionIgnoresTheStatus(t *testing.T) {
	admitting(t, guard.Deny)
	clusterVersion(t, &configv1.Update{Version: "4.18.5", Image: image("5")}, updates()...)
	got := request(t.Context(), t, `{"status":{"versionHash":"1","desired":{"version":"4.18.5","image":"`+image("5")+`"}}}`, "status")
	if got.denied != "" || len(got.warnings) > 0 {
		t.Errorf("the status of ClusterVersion could not be written: %+v", got)
	}
}

// A target that became available after the controller ended has no verdict.
func TestAdmissionWithoutTheController(t *testing.T) {
	for _, mode := range []guard.Mode{guard.Warn, guard.Deny} {
		t.Run(string(mode), func(t *testing.T) {
			admitting(t, mode)
			if got := request(t.Context(), t, `{"spec":{"desiredUpdate":{"version":"4.18.7"}}}`); !got.objects() ||
				(got.denied != "") != (mode == guard.Deny) {
				t.Errorf("a target that became available later: %+v", got)
			}
			for name, patch := range map[string]string{
				"Ready": readyRequest, "Channel": `{"spec":{"channel":"stable-4.18"}}`,
				"Force": `{"spec":{"desiredUpdate":{"version":"4.18.5","force":true}}}`,
			} {
				if got := request(t.Context(), t, patch); got.denied != "" {
					t.Errorf("%s: %+v", name, got)
				}
			}
		})
	}
}

// A policy that is applied again uses the present verdicts, not those before its removal.
func TestAdmissionAppliedAgain(t *testing.T) {
	made := admitting(t, guard.Deny)
	if _, err := made.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "nothing is denied", func(ctx context.Context) bool { return !request(ctx, t, blockedRequest).objects() })
	apply(t, made, verdict("4", "4.18.4", "Blocked"), verdict("5", "4.18.5", "Ready"))
	await.Until(t, "the API server uses the new verdicts", func(ctx context.Context) bool {
		return request(ctx, t, readyRequest).objects() && !request(ctx, t, blockedRequest).objects()
	})
}

// The target of a verdict that has expired, or that permits nothing by another reason, is no longer allowed, and the answer
// states why.
func TestAdmissionOfAnExpiredVerdict(t *testing.T) {
	admitting(t, guard.Deny)
	later := admission(t, guard.Deny, start.Add(24*time.Hour))
	denied := func(made *guard.Switch, of guard.Verdict, why string) {
		t.Helper()
		if err := made.Apply(t.Context(), guard.State{Verdicts: []guard.Verdict{of}}); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the target is denied, since "+why, func(ctx context.Context) bool {
			return strings.Contains(request(ctx, t, readyRequest).denied, "its verdict is "+why)
		})
	}
	denied(later, verdict("4", "4.18.4", "Ready"), "expired: it was valid until ")
	refused := verdict("4", "4.18.4", "Ready")
	refused.Refusal = `the run leaves out check "Drain" ' + "` + "`" + `\u0022`
	denied(admission(t, guard.Deny, start), refused, `not valid: the run leaves out check "Drain" ' + "`)
}

func TestAdmissionRemoved(t *testing.T) {
	made := admitting(t, guard.Deny)
	want := []preflight.Object{
		{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy", Name: "update-preflight"},
		{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding", Name: "update-preflight"},
	}
	found, err := made.List(t.Context())
	if diff := gocmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("objects: %v (-want +got):\n%s", err, diff)
	}
	for range 2 { // it may be repeated
		if _, err := made.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := made.List(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("left: %v, %v", found, err)
	}
	await.Until(t, "nothing is denied", func(ctx context.Context) bool { return !request(ctx, t, blockedRequest).objects() })
}

func TestUnknownMode(t *testing.T) {
	if _, err := guard.Admission(client(), "Audit", at(start)); err == nil || !strings.Contains(err.Error(), `"Audit"`) {
		t.Errorf("the mode is not rejected by name: %v", err)
	}
}
