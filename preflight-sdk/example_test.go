package preflight_test

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// A whole check program: it says whether the target, which takes no RSA keys
// of less than 2048 bits, would refuse the certificate that is in use.
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
		return err // Could not tell: Unknown, never a pass.
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
		t.Failf("the default certificate %q has an RSA key of %d bits, and %s takes no less than 2048",
			certificate.Subject, key.N.BitLen(), t.Update().To)
		t.Remedyf("Replace it: oc -n openshift-ingress create secret tls new-default --cert=… --key=…")
		t.Object(preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: "openshift-ingress", Name: "router-certs-default"})
	}
	return nil
}

// What is left in the termination message is read like this, whatever else is
// there.
func ExampleParseFrame() {
	message := []byte(`level=info msg="noise is fine"
preflight/1 json 122 eb4c4d78 {"state":"final","findings":[{"name":"Quorum","outcome":"Fail","reason":"MemberDown","message":"etcd-2 does not answer"}]}
`)
	result, err := preflight.ParseFrame(message)
	if err != nil {
		fmt.Println("could not tell:", err)
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

// A result that another program than a check says is framed like this.
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
