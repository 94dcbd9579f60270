package updatepreflight_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/runner/trigger/updatepreflight"
)

const id = "1c182977-5663-428d-92a3-3d2bdf3fffb6"

// decided is a report of a run on that cluster.
func decided(run, cluster string, now time.Time) *report.Report {
	return &report.Report{
		Run:     report.Run{ID: run, CompletionTime: now.Format(time.RFC3339), Phase: report.PhaseComplete},
		Cluster: report.Cluster{ID: cluster}, Target: report.Target{
			Version: "4.19.12",
			Image:   "example.com/release@sha256:" + strings.Repeat("1", 64), Verified: true,
		},
		Verdict: verdict.Verdict{Decision: verdict.Ready, ValidUntil: now.Add(time.Hour).Format(time.RFC3339)},
	}
}

// A verdict is signed once per run: each signature differs, and a status must not.
func TestSigned(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.LoadECDSASignerVerifier(private, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	var log bytes.Buffer
	reporter := updatepreflight.NewReporter(nil, key, slog.New(slog.NewTextHandler(&log, nil)), nil)
	add := func(reporter *updatepreflight.Reporter, decided *report.Report) string {
		observed := projection.Observation{Verdict: decided}
		if next := reporter.Add(t.Context(), &observed, runplan.Subject{Object: &v1alpha1.UpdatePreflight{}},
			runplan.State{Now: now}); !next.IsZero() {
			t.Errorf("a verdict changes by an event, not at %s", next)
		}
		return observed.Attestation
	}
	first := add(reporter, decided("run-1", id, now))
	if made := attestation.Verify([]byte(first), key, attestation.Expectation{Cluster: id, Release: "4.19.12"}, now); !made.Permits() {
		t.Errorf("the signed verdict is %s: %s", made.Result, made.Message)
	}
	if again := add(reporter, decided("run-1", id, now)); again != first {
		t.Error("the same verdict was signed again")
	}
	if other := add(reporter, decided("run-2", id, now)); other == first || other == "" {
		t.Error("another run has the verdict of the first")
	}
	if got := add(reporter, nil); got != "" {
		t.Errorf("nothing was signed as %s", got)
	}
	if got := add(reporter, decided("run-3", "", now)); got != "" || !strings.Contains(log.String(), "run-3") {
		t.Errorf("a verdict on no cluster cannot be signed, which is logged: %q, %s", got, &log)
	}
	if got := add(updatepreflight.NewReporter(nil, nil, slog.New(slog.DiscardHandler), nil), decided("run-1", id, now)); got != "" {
		t.Errorf("signed without a key: %s", got)
	}
}
