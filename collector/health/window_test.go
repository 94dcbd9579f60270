package health_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	upgradeConfigsPath = "/apis/upgrade.managed.openshift.io/v1alpha1/upgradeconfigs"
	upgradeNamespace   = "openshift-managed-upgrade-operator"
)

// defineUpgradeConfigs makes the server serve UpgradeConfigs, as with MUO.
func defineUpgradeConfigs(t *testing.T) {
	t.Helper()
	server.Define(t, filepath.Join("testdata", "upgradeconfigs.crd.yaml"))
}

// upgradeConfig is an UpgradeConfig for 12:00 on the first of May.
func upgradeConfig(change func(spec map[string]any)) *unstructured.Unstructured {
	spec := map[string]any{
		"type": "OSD", "upgradeAt": "2020-05-01T12:00:00Z", "PDBForceDrainTimeout": int64(120),
		"desired": map[string]any{"channel": "fast-4.18", "version": "4.18.4"},
	}
	change(spec)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "upgrade.managed.openshift.io/v1alpha1", "kind": "UpgradeConfig",
		"metadata": map[string]any{"name": "managed-upgrade-config", "namespace": upgradeNamespace}, "spec": spec,
	}}
}

// clock is a time on the first of May.
func clock(t *testing.T, at string) time.Time {
	t.Helper()
	now, err := time.Parse(time.DateTime, "2020-05-01 "+at)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func TestUpgradeWindow(t *testing.T) {
	defineUpgradeConfigs(t)
	for name, tc := range map[string]struct {
		reason  string
		now     string
		change  func(spec map[string]any)
		message string // a part of it
		want    checktest.Result
	}{
		"1150": {
			reason: "it is not yet 12:00", now: "11:50:00", message: "and opens in 10 minutes", want: result(preflight.Warn, "BeforeWindow"),
		},
		"1232": {
			reason: "30 minutes have passed since 12:00", now: "12:32:00", message: "and closed 2 minutes ago", want: result(preflight.Warn, "AfterWindow"),
		},
		"1215": {
			reason: "it is within the upgrade window", now: "12:15:00", message: "and is open for 15 minutes more", want: result(preflight.Pass, "InWindow"),
		},
		"1200": {
			reason: "the window opens after upgradeAt, not at it", now: "12:00:00", message: "opens in 0 minutes", want: result(preflight.Warn, "BeforeWindow"),
		},
		"1200AndASecond": {reason: "the window opens after upgradeAt", now: "12:00:01", message: "open for 30 minutes more", want: result(preflight.Pass, "InWindow")},
		"1229AndASecond": {reason: "the window is 30 minutes", now: "12:29:01", message: "open for 1 minute more", want: result(preflight.Pass, "InWindow")},
		"1230":           {reason: "the window ends at 30 minutes", now: "12:30:00", want: result(preflight.Warn, "AfterWindow")},
		"Zone": {
			reason: "a time has a zone", now: "12:15:00", change: func(spec map[string]any) { spec["upgradeAt"] = "2020-05-01T14:00:00+02:00" },
			message: "from 2020-05-01T12:00:00Z on", want: result(preflight.Pass, "InWindow"),
		},
		"OtherVersion": {
			reason: "the window is for another update", now: "12:15:00",
			change:  func(spec map[string]any) { spec["desired"] = map[string]any{"version": "4.18.9"} },
			message: `it is for the update to "4.18.9", and not to 4.18.4`, want: result(preflight.Warn, "OtherVersion"),
		},
		"OtherVersionTooLate": {
			reason: "the message has both", now: "13:00:00",
			change:  func(spec map[string]any) { spec["desired"] = map[string]any{"version": "4.18.9"} },
			message: `closed 30 minutes ago; it is for the update to "4.18.9"`, want: result(preflight.Warn, "AfterWindow"),
		},
		"Image": {
			reason: "an image has no version to compare", now: "12:15:00",
			change: func(spec map[string]any) { spec["desired"] = map[string]any{"image": "quay.io/x@sha256:0"} }, want: result(preflight.Pass, "InWindow"),
		},
		"NotATime": {
			reason: "the check only warns", now: "12:15:00",
			change:  func(spec map[string]any) { spec["upgradeAt"] = "tomorrow" },
			message: `the upgradeAt "tomorrow", which is not an RFC 3339 time`, want: result(preflight.Warn, "InvalidUpgradeAt"),
		},
		"NoZone": {
			reason: "MUO does not parse a time without a zone either", now: "12:15:00",
			change: func(spec map[string]any) { spec["upgradeAt"] = "2020-05-01 12:00:00" }, want: result(preflight.Warn, "InvalidUpgradeAt"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(map[string]any) {}
			}
			server.Create(t, upgradeConfig(tc.change))
			findings := checktest.RunAt(t, health.UpgradeWindow(), server.Snapshot(t), check.Subject{Update: patch(t), Now: clock(t, tc.now)})
			if diff := cmp.Diff(results{"UpgradeWindow": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.message) || findings[0].Blocks {
				t.Errorf("%s: %q, blocks: %t; want %q, and false", tc.reason, findings[0].Message, findings[0].Blocks, tc.message)
			}
		})
	}
}

func TestUpgradeWindowWithout(t *testing.T) {
	defineUpgradeConfigs(t)
	elsewhere := upgradeConfig(func(map[string]any) {})
	elsewhere.SetNamespace("elsewhere")
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		stored []*unstructured.Unstructured
		want   checktest.Result
	}{
		"None":      {reason: "no update is scheduled", server: server, want: result(preflight.Skipped, "NoUpgradeConfig")},
		"Elsewhere": {reason: "any namespace is read", server: server, stored: []*unstructured.Unstructured{elsewhere}, want: result(preflight.Pass, "InWindow")},
		"NotServed": {
			reason: "MUO is not installed", want: result(preflight.Skipped, "NoUpgradeConfig"),
			server: server.Responding(map[string]checktest.Response{upgradeConfigsPath: checktest.NotServed}),
		},
		"NotServedAndForbidden": {
			reason: "an API that does not exist needs no permission", want: result(preflight.Skipped, "NoUpgradeConfig"),
			server: server.Unprivileged().Responding(map[string]checktest.Response{"/apis/upgrade.managed.openshift.io/v1alpha1": checktest.NotServed}),
		},
		"Forbidden": {reason: "the check only warns", server: server.Unprivileged(), want: result(preflight.Warn, "Forbidden")},
		"Malformed": {
			reason: "an object that the schema does not allow", want: result(preflight.Warn, "Unreadable"),
			server: server.Responding(map[string]checktest.Response{upgradeConfigsPath: checktest.Body(
				`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfigList","items":[{"kind":"UpgradeConfig","spec":{"upgradeAt":12}}]}`)}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, object := range tc.stored {
				server.Create(t, object)
			}
			got := checktest.Results(checktest.RunAt(t, health.UpgradeWindow(), tc.server.Snapshot(t), check.Subject{Update: patch(t), Now: clock(t, "12:15:00")}))
			if diff := cmp.Diff(results{"UpgradeWindow": tc.want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzJudgeWindow checks that with any upgradeAt the finding has a bounded message,
// and does not block.
func FuzzJudgeWindow(f *testing.F) {
	for _, seed := range []string{"", "2020-05-01T12:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00", "2020-05-01T12:00:00.999999999Z", "\xff\n"} {
		f.Add(seed, "4.18.4")
	}
	now := time.Date(2020, 5, 1, 12, 15, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, at, version string) {
		config := &snapshot.UpgradeConfig{}
		config.Spec.UpgradeAt, config.Spec.Desired.Version = at, version
		found := health.JudgeWindow(gap.Proven("a test"), config, "4.18.4", now)
		if found.Outcome != preflight.Pass && found.Outcome != preflight.Warn {
			t.Errorf("%q is %s", at, found.Outcome)
		}
		if found.Message == "" || found.Reason == "" || len(found.Message) > 20_000 {
			t.Errorf("%q: a message of %d bytes, reason %q", at, len(found.Message), found.Reason)
		}
		opens, err := time.Parse(time.RFC3339, at)
		open := err == nil && now.After(opens) && now.Sub(opens) < 30*time.Minute
		if inside := found.Reason == "InWindow" || found.Reason == "OtherVersion"; inside != open {
			t.Errorf("%q is inside: %t, want %t", at, inside, open)
		}
	})
}
