package command_test

import (
	"crypto/elliptic"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
)

// cluster is the ID of the cluster of the signed verdicts.
const cluster = "1c182977-5663-428d-92a3-3d2bdf3fffb6"

// signVerdicts gives a script the directory verdicts, with the public keys ours.pub and theirs.pub,
// and verdicts that are signed by the first: ready.json, forced.json, narrowed.json, blocked.json, undecided.json and expired.json.
func signVerdicts(env *testscript.Env) error {
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), nil)
	if err != nil {
		return err
	}
	_, other, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), nil)
	if err != nil {
		return err
	}
	forced, expired, narrowed := signable(verdict.Ready), signable(verdict.Ready), signable(verdict.Ready)
	narrowed.Verdict.Narrowed = []string{"alert KubePodCrashLooping"}
	forced.Verdict.Forced, forced.Verdict.ForceReason, expired.Verdict.ValidUntil = true, "an outage", "2026-01-02T03:04:05Z"
	files := map[string][]byte{"ours.key": private, "ours.pub": public, "theirs.pub": other}
	for name, decided := range map[string]report.Report{
		"ready": signable(verdict.Ready), "forced": forced, "blocked": signable(verdict.Blocked), "undecided": signable(verdict.Undecided),
		"expired": expired, "narrowed": narrowed,
	} {
		if files[name+".json"], err = signedVerdict(private, decided); err != nil {
			return err
		}
	}
	directory := filepath.Join(env.WorkDir, "verdicts")
	if err := os.Mkdir(directory, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			return err
		}
	}
	env.Setenv("CLUSTER", cluster)
	return nil
}

func signedVerdict(private []byte, decided report.Report) ([]byte, error) {
	key, err := attestation.PrivateKey(private, nil)
	if err != nil {
		return nil, err
	}
	stated, err := attestation.Of(decided)
	if err != nil {
		return nil, err
	}
	return attestation.Sign(stated, key)
}

// signable is a report of this minute, to 4.19.12.
func signable(decision verdict.Decision) report.Report {
	now := time.Now().UTC()
	decided := report.Report{
		Run:     report.Run{CompletionTime: now.Format(time.RFC3339), Phase: report.PhaseComplete, ToolVersion: "v1.2.3"},
		Cluster: report.Cluster{ID: cluster, Version: "4.19.3"},
		Target:  report.Target{Version: "4.19.12", Image: repository + "@sha256:" + strings.Repeat("1", 64), Verified: true},
		Verdict: verdict.Verdict{Decision: decision, ValidUntil: now.Add(20 * time.Hour).Format(time.RFC3339)},
	}
	if decision == verdict.Blocked {
		decided.Verdict.Blocking = []string{"AdminAck-4.18"}
	}
	return decided
}
