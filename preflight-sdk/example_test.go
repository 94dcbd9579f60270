package preflight_test

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// A complete check program: it reports whether the target, which requires RSA keys
// of at least 2048 bits, would reject the current default certificate.
func Example() { //nolint:testableexamples // Main ends the process.
	check := preflight.Check{
		Name:        "DefaultCertificate",
		Description: "The target accepts the key of the default certificate",
		URL:         "https://docs.example.com/ingress/default-certificate",
		Run:         defaultCertificate,
	}
	preflight.Main(check)
}

func defaultCertificate(_ context.Context, t *preflight.T) error {
	const path = "/etc/ingress/tls.crt"
	t.Logf("reading %s", path)
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skipf("no default certificate is configured")
		return nil
	}
	if err != nil {
		return err // Inconclusive: Unknown, never a pass.
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return fmt.Errorf("no PEM block in %s", path)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("certificate in %s: %w", path, err)
	}

	key, isRSA := certificate.PublicKey.(*rsa.PublicKey)
	if isRSA && key.N.BitLen() < 2048 {
		t.Reason("KeyTooShort")
		t.Failf("the default certificate %q has an RSA key of %d bits; %s requires at least 2048",
			certificate.Subject, key.N.BitLen(), t.Update().To)
		t.Remedyf("Replace it: oc -n openshift-ingress create secret tls new-default --cert=… --key=…")
		t.Object(preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: "openshift-ingress", Name: "router-certs-default"})
	}
	return nil
}

// ParseFrame finds the result in a termination message or a log among other text.
func ExampleParseFrame() {
	message := []byte(`level=info msg="other text is ignored"
preflight/1 json 122 eb4c4d78 {"state":"final","findings":[{"name":"Quorum","outcome":"Fail","reason":"MemberDown","message":"etcd-2 does not answer"}]}
`)
	result, err := preflight.ParseFrame(message)
	if err != nil {
		fmt.Println("inconclusive:", err)
		return
	}
	for _, f := range result.Findings {
		fmt.Printf("%s: %s: %s\n", f.Name, f.Outcome, f.Message)
	}
	fmt.Println("exit code 3 agrees:", result.Agrees(preflight.ExitFail))
	fmt.Println("exit code 0 agrees:", result.Agrees(preflight.ExitPass))
	// Output:
	// Quorum: Fail: etcd-2 does not answer
	// exit code 3 agrees: true
	// exit code 0 agrees: false
}

// Frame encodes the result of a program that does not use Main.
func ExampleResult_Frame() {
	line, err := preflight.Result{
		State: preflight.StateFinal,
		Findings: []preflight.Finding{
			{Name: "Quorum", Outcome: preflight.Pass, Reason: "Passed"},
		},
	}.Frame(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", line)
	// Output:
	// preflight/1 json 83 f9dcbe3c {"state":"final","findings":[{"name":"Quorum","outcome":"Pass","reason":"Passed"}]}
}

// A check of several objects has a part for each object, so that an error of one
// does not hide the finding of another.
func ExampleT_Run() {
	check := preflight.Check{
		Name: "MemberSpace",
		Run: func(_ context.Context, t *preflight.T) error {
			used := map[string]int{"etcd-0": 31, "etcd-1": 97}
			for _, member := range []string{"etcd-0", "etcd-1", "etcd-2"} {
				t.Run(member, func(_ context.Context, t *preflight.T) error {
					percent, ok := used[member]
					if !ok {
						return errors.New("does not answer")
					}
					if percent > 90 {
						t.Failf("the database fills %d %% of its quota", percent)
						t.Remedyf("oc rsh -n openshift-etcd %s etcdctl defrag", member)
					}
					return nil
				})
			}
			return nil
		},
	}
	finding := check.Evaluate(context.Background(), preflight.Update{}, nil)
	fmt.Println(finding.Outcome, finding.Message)
	// Output:
	// Fail etcd-1: the database fills 97 % of its quota; etcd-2: does not answer
}

// Evaluate runs one check without a process, as in a test.
func ExampleCheck_Evaluate() {
	check := preflight.Check{
		Name: "Credentials",
		Run: func(_ context.Context, t *preflight.T) error {
			t.Logf("reading the identity provider")
			if t.Update().Facts["identityProvider"] == "" {
				t.Inconclusivef("the identity provider of %s is unknown", t.Update().To)
			}
			return nil
		},
	}
	finding := check.Evaluate(context.Background(), preflight.Update{To: "4.21.3"}, os.Stdout)
	fmt.Println(finding.Outcome, finding.Reason, finding.Message)
	// Output:
	// Credentials: reading the identity provider
	// Unknown Inconclusive the identity provider of 4.21.3 is unknown
}

// Cleanup functions are called however the check ends.
func ExampleT_Cleanup() {
	check := preflight.Check{
		Name: "Disk",
		Run: func(_ context.Context, t *preflight.T) error {
			file, err := os.CreateTemp("", "preflight")
			if err != nil {
				return err
			}
			t.Cleanup(func() {
				_ = file.Close()
				_ = os.Remove(file.Name())
				fmt.Println("removed")
			})
			panic("no disk")
		},
	}
	finding := check.Evaluate(context.Background(), preflight.Update{}, nil)
	fmt.Println(finding.Outcome, finding.Message)
	// Output:
	// removed
	// Unknown panic: no disk
}

// A check declares its RBAC rules. /bin/preflight --print-manifest prints the same
// manifest.
func ExampleManifest() {
	check := preflight.Check{
		Name: "MachineConfigs",
		Rules: []preflight.Rule{{
			APIGroups: []string{"machineconfiguration.openshift.io"},
			Resources: []string{"machineconfigs"},
			Verbs:     []string{"list"},
		}},
		Run: func(context.Context, *preflight.T) error { return nil },
	}
	manifest, err := preflight.Manifest(preflight.ManifestOptions{
		Name:      "machine-config-preflight",
		Namespace: "openshift-machine-config-operator",
		Image:     "quay.io/openshift/origin-machine-config-operator:latest",
	}, check)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(strings.Split(string(manifest), "---\n")[1])
	// Output:
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: ClusterRole
	// metadata:
	//   name: machine-config-preflight
	//   annotations:
	//     openshift.io/preflight-check: "true"
	// rules:
	// - apiGroups: ["machineconfiguration.openshift.io"]
	//   resources: ["machineconfigs"]
	//   verbs: ["list"]
}
