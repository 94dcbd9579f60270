package health_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	upgradeConfigsPath = "/apis/upgrade.managed.openshift.io/v1alpha1/upgradeconfigs"
	upgradeNamespace   = "openshift-managed-upgrade-operator"
)

// serveUpgradeConfigs has the server serve them, as where MUO is installed.
func serveUpgradeConfigs(t *testing.T) {
	t.Helper()
	server.Define(t, filepath.Join("testdata", "upgradeconfigs.crd.yaml"))
}

// upgradeConfig is one for 12:00 of the first of May.
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

func clock(t *testing.T, at string) func() time.Time {
	t.Helper()
	now, err := time.Parse(time.DateTime, "2020-05-01 "+at)
	if err != nil {
		t.Fatal(err)
	}
	return func() time.Time { return now }
}

func TestUpgradeWindow(t *testing.T) {
	serveUpgradeConfigs(t)
	for name, tc := range map[string]struct {
		reason string
		now    string
		change func(spec map[string]any)
		says   string
		want   checktest.Result
	}{
		"1150": {
			reason: "No, it is not yet 12:00", now: "11:50:00", says: "and opens in 10 minutes", want: said(preflight.Warn, "BeforeWindow"),
		},
		"1232": {
			reason: "No, 30 minutes have passed since 12:00", now: "12:32:00", says: "and closed 2 minutes ago", want: said(preflight.Warn, "AfterWindow"),
		},
		"1215": {
			reason: "Yes, it is within the upgrade window", now: "12:15:00", says: "and is open for 15 minutes more", want: said(preflight.Pass, "InWindow"),
		},
		"1200": {
			reason: "later than, not at", now: "12:00:00", says: "opens in 0 minutes", want: said(preflight.Warn, "BeforeWindow"),
		},
		"1200AndASecond": {reason: "later than", now: "12:00:01", says: "open for 30 minutes more", want: said(preflight.Pass, "InWindow")},
		"1229AndASecond": {reason: "within 30 minutes", now: "12:29:01", says: "open for 1 minute more", want: said(preflight.Pass, "InWindow")},
		"1230":           {reason: "at 30 minutes they have passed", now: "12:30:00", want: said(preflight.Warn, "AfterWindow")},
		"Zone": {
			reason: "a time has a zone", now: "12:15:00", change: func(spec map[string]any) { spec["upgradeAt"] = "2020-05-01T14:00:00+02:00" },
			says: "from 2020-05-01T12:00:00Z on", want: said(preflight.Pass, "InWindow"),
		},
		"OtherVersion": {
			reason: "the window is for another update", now: "12:15:00",
			change: func(spec map[string]any) { spec["desired"] = map[string]any{"version": "4.18.9"} },
			says:   `it is for the update to "4.18.9", and not to 4.18.4`, want: said(preflight.Warn, "OtherVersion"),
		},
		"OtherVersionTooLate": {
			reason: "both are said", now: "13:00:00",
			change: func(spec map[string]any) { spec["desired"] = map[string]any{"version": "4.18.9"} },
			says:   `closed 30 minutes ago; it is for the update to "4.18.9"`, want: said(preflight.Warn, "AfterWindow"),
		},
		"Image": {
			reason: "an image has no version to compare", now: "12:15:00",
			change: func(spec map[string]any) { spec["desired"] = map[string]any{"image": "quay.io/x@sha256:0"} }, want: said(preflight.Pass, "InWindow"),
		},
		"NotATime": {
			reason: "it is information, so it does not stand in the way", now: "12:15:00",
			change: func(spec map[string]any) { spec["upgradeAt"] = "tomorrow" },
			says:   `the upgradeAt "tomorrow", which is not an RFC 3339 time`, want: said(preflight.Warn, "InvalidUpgradeAt"),
		},
		"NoZone": {
			reason: "MUO does not read what S3 calls ISO 8601 either", now: "12:15:00",
			change: func(spec map[string]any) { spec["upgradeAt"] = "2020-05-01 12:00:00" }, want: said(preflight.Warn, "InvalidUpgradeAt"),
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
			if !strings.Contains(findings[0].Message, tc.says) || findings[0].Blocks {
				t.Errorf("%s: %q, blocks: %t; want %q, and not", tc.reason, findings[0].Message, findings[0].Blocks, tc.says)
			}
		})
	}
}

func TestUpgradeWindowWithout(t *testing.T) {
	serveUpgradeConfigs(t)
	elsewhere := upgradeConfig(func(map[string]any) {})
	elsewhere.SetNamespace("elsewhere")
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		held   []*unstructured.Unstructured
		want   checktest.Result
	}{
		"None":      {reason: "nobody told MUO to update", server: server, want: said(preflight.Skipped, "NoUpgradeConfig")},
		"Elsewhere": {reason: "it is found in any namespace", server: server, held: []*unstructured.Unstructured{elsewhere}, want: said(preflight.Pass, "InWindow")},
		"NotServed": {
			reason: "MUO is not installed", want: said(preflight.Skipped, "NoUpgradeConfig"),
			server: server.Responding(map[string]checktest.Response{upgradeConfigsPath: checktest.NotServed}),
		},
		"NotServedAndForbidden": {
			reason: "nobody has permission for an API that does not exist", want: said(preflight.Skipped, "NoUpgradeConfig"),
			server: server.Unprivileged().Responding(map[string]checktest.Response{"/apis/upgrade.managed.openshift.io/v1alpha1": checktest.NotServed}),
		},
		"Forbidden": {reason: "it is information", server: server.Unprivileged(), want: said(preflight.Warn, "Forbidden")},
		"Malformed": {
			reason: "what the schema does not allow", want: said(preflight.Warn, "Unreadable"),
			server: server.Responding(map[string]checktest.Response{upgradeConfigsPath: checktest.Body(
				`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfigList","items":[{"kind":"UpgradeConfig","spec":{"upgradeAt":12}}]}`)}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, object := range tc.held {
				server.Create(t, object)
			}
			got := checktest.Results(checktest.RunAt(t, health.UpgradeWindow(), tc.server.Snapshot(t), check.Subject{Update: patch(t), Now: clock(t, "12:15:00")}))
			if diff := cmp.Diff(results{"UpgradeWindow": tc.want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzJudgeWindow makes sure that whatever is in upgradeAt, the finding says
// something, is bounded, and does not stand in the way.
func FuzzJudgeWindow(f *testing.F) {
	for _, seed := range []string{"", "2020-05-01T12:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00", "2020-05-01T12:00:00.999999999Z", "\xff\n"} {
		f.Add(seed, "4.18.4")
	}
	now := time.Date(2020, 5, 1, 12, 15, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, at, version string) {
		config := &snapshot.UpgradeConfig{}
		config.Spec.UpgradeAt, config.Spec.Desired.Version = at, version
		found := health.JudgeWindow(config, "4.18.4", now)
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
