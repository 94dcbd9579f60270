package signing_test

import (
	"crypto/elliptic"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/signing"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
)

// opened parses the flags and opens their destination.
func opened(t *testing.T, args ...string) (*signing.Destination, error) {
	t.Helper()
	verb := &cobra.Command{Use: "run"}
	var flags signing.Flags
	flags.Add(verb)
	if err := verb.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	made, err := flags.Open(t.Context(), cli.New(verb.PersistentFlags(), streams))
	t.Cleanup(made.Close)
	return made, err
}

func decided(decision verdict.Decision) report.Report {
	now := time.Now().UTC()
	return report.Report{
		Run:     report.Run{CompletionTime: now.Format(time.RFC3339), Phase: report.PhaseComplete},
		Cluster: report.Cluster{ID: "1c182977-5663-428d-92a3-3d2bdf3fffb6"},
		Target:  report.Target{Verified: true, Version: "4.19.12", Image: "example.com/release@sha256:" + strings.Repeat("1", 64)},
		Verdict: verdict.Verdict{Decision: decision, ValidUntil: now.Add(2 * time.Hour).Format(time.RFC3339)},
	}
}

// keyPair is a key in two files.
type keyPair struct{ private, public []byte }

// password is that of encrypted, whose derivation takes most of the time of these tests.
const password = "a password"

var (
	encrypted = sync.OnceValues(func() (keyPair, error) { return newKey(cryptoutils.StaticPasswordFunc([]byte(password))) })
	plain     = sync.OnceValues(func() (keyPair, error) { return newKey(nil) })
)

func newKey(password cryptoutils.PassFunc) (keyPair, error) {
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), password)
	return keyPair{private, public}, err
}

func TestWrite(t *testing.T) {
	t.Setenv("COSIGN_PASSWORD", password)
	for name, tc := range map[string]struct {
		reason   string
		key      func() (keyPair, error)
		decision verdict.Decision
	}{
		"Ready":     {reason: "the key has a password", key: encrypted, decision: verdict.Ready},
		"Blocked":   {reason: "every decision is signed", key: plain, decision: verdict.Blocked},
		"Undecided": {reason: "every decision is signed", key: plain, decision: verdict.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			pair, err := tc.key()
			if err != nil {
				t.Fatal(err)
			}
			key, err := attestation.PublicKey(pair.public)
			if err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string]string{"cosign.key": string(pair.private), "verdict.dsse.json": "of before"} {
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			destination, err := opened(t, "--sign", "cosign.key")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat("verdict.dsse.json"); err == nil {
				t.Error("the file of an earlier run is still there while this one runs")
			}
			if err := destination.Write(decided(tc.decision)); err != nil {
				t.Fatal(err)
			}
			destination.Close()
			envelope, err := os.ReadFile("verdict.dsse.json")
			if err != nil {
				t.Fatal(err)
			}
			made := attestation.Verify(envelope, key, attestation.Expectation{}, time.Now())
			if made.Result != attestation.Valid || made.Statement.Verdict.Decision != tc.decision {
				t.Errorf("%s: the signed verdict is %s: %s", tc.reason, made.Result, made.Message)
			}
			if left, err := filepath.Glob(".preflight-*"); err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v, %v", left, err)
			}
		})
	}
}

func TestNoKey(t *testing.T) {
	locked, err := encrypted()
	if err != nil {
		t.Fatal(err)
	}
	open, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for file, content := range map[string][]byte{"encrypted.key": locked.private, "cosign.pub": locked.public, "ok.key": open.private} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Missing":  {reason: "there is no such file", args: []string{"--sign", "none.key"}, want: "no such file"},
		"Public":   {reason: "a public key cannot sign", args: []string{"--sign", "cosign.pub"}, want: "not a readable private key"},
		"Password": {reason: "the password is missing", args: []string{"--sign", "encrypted.key"}, want: "COSIGN_PASSWORD"},
		"KMS":      {reason: "a KMS needs its plugin", args: []string{"--sign", "nosuchkms://alias/x"}, want: "sigstore-kms-nosuchkms"},
		"Secret":   {reason: "the Secret has no namespace", args: []string{"--sign", "k8s://preflight"}, want: "k8s://NAMESPACE/SECRET"},
		"NoDirectory": {
			reason: "the file cannot be written", args: []string{"--sign", "ok.key", "--signed-verdict", "none/verdict.json"},
			want: "none/verdict.json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := opened(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || made != nil {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
