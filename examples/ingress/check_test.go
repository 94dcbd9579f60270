// The tests generate keys that Go rejects by default.
//
//go:debug rsa1024min=0
package main_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/preflight-sdk/preflighttest"
	"github.com/openshift/update-preflight/test/cluster"
)

// Tests of: examples/internal/checktest

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

const day = 24 * time.Hour

// authority is a certificate and the key that signs other certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// certificate returns a certificate that is valid for the given time from now. Without
// a signer it is self-signed.
func certificate(t *testing.T, name string, key crypto.Signer, valid time.Duration, signer *authority) *x509.Certificate {
	t.Helper()
	return signed(t, 0, &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(valid)}, key, signer)
}

// signed is certificate with a signature algorithm; 0 means the default.
func signed(t *testing.T, algorithm x509.SignatureAlgorithm, template *x509.Certificate, key crypto.Signer,
	signer *authority,
) *x509.Certificate {
	t.Helper()
	template.SerialNumber, template.NotBefore = big.NewInt(1), time.Now().Add(-400*day)
	template.SignatureAlgorithm, template.BasicConstraintsValid, template.IsCA = algorithm, true, signer == nil
	if signer == nil {
		signer = &authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, key.Public(), signer.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ecdsaKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// secret returns a Secret with the chain. Its key is invalid, because the check must not
// use it.
func secret(name string, chain ...*x509.Certificate) string {
	var text bytes.Buffer
	for _, cert := range chain {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	}
	return secretOf(name, text.String())
}

func secretOf(name, text string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: %s, namespace: "+
		"openshift-ingress}, data: {tls.crt: %q, tls.key: %q}}\n",
		name, base64.StdEncoding.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte("SECRET-KEY")))
}

// controller returns an IngressController with that default certificate.
func controller(name, secret string) string {
	spec := "{}"
	if secret != "" {
		spec = fmt.Sprintf("{defaultCertificate: {name: %s}}", secret)
	}
	return fmt.Sprintf("---\n{apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: %s, namespace: "+
		"openshift-ingress-operator}, spec: %s}\n", name, spec)
}

// prime192 is a certificate with a curve that Go does not support, generated with
// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime192v1`.
const prime192 = `-----BEGIN CERTIFICATE-----
MIIBUzCCAQmgAwIBAgIUfWOo8Md3W2YvRchxFBqJXIJ67FIwCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDb2xkMCAXDTI2MTEyMTEwMTgwMVoYDzIxMjYxMDI4MTAxODAx
WjAOMQwwCgYDVQQDDANvbGQwSTATBgcqhkjOPQIBBggqhkjOPQMBAQMyAARnIsCB
zc6vaERozFUACpY/KmvtVhPsbCxg6sxkEiiOn+seqkOEs8xwUlGqY7X/sHKjUzBR
MB0GA1UdDgQWBBSiCxh0gebp8YeY6srJAMg7hg/mJTAfBgNVHSMEGDAWgBSiCxh0
gebp8YeY6srJAMg7hg/mJTAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCAzgA
MDUCGHteT1SP/j0Udo3PhjMhl5QAgl6IWPIxSgIZAJbDOtJicYmmGlVR8BPxdfok
msBvKI3fmQ==
-----END CERTIFICATE-----
`

func TestDefaultCertificate(t *testing.T) {
	env := checktest.New(t, local, "openshift-ingress-operator", "ingress-preflight")
	key := rsaKey(t, 2048)
	root := &authority{signed(t, x509.SHA1WithRSA,
		&x509.Certificate{Subject: pkix.Name{CommonName: "Root"}, NotAfter: time.Now().Add(3650 * day)}, key, nil), key}
	weakKey := rsaKey(t, 1024)
	weakRoot := &authority{certificate(t, "Weak root", weakKey, 3650*day, nil), weakKey}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := certificate(t, "*.apps.example.com", key, 365*day, root)

	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	skip := checktest.Want{Outcome: preflight.Skipped, Reason: "NotApplicable", Messages: []string{"the cluster has no IngressController"}}
	rejected := func(messages ...string) checktest.Want {
		return checktest.Want{Outcome: preflight.Fail, Reason: "CertificateRejected", Messages: messages, Objects: []string{"custom"}}
	}
	unknown := func(messages ...string) checktest.Want {
		return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Messages: messages}
	}
	for name, tc := range map[string]struct {
		reason           string
		state            string
		run              func(*testing.T, ...string) checktest.Report
		strength, expiry checktest.Want
	}{
		"NoController": {
			reason:   "without an ingress controller the check does not apply",
			strength: skip, expiry: skip,
		},
		"Good": {
			reason:   "an RSA key of 2048 bits signed with SHA-256 is accepted, and so is a root that is self-signed with SHA-1",
			state:    controller("default", "custom") + secret("custom", good, root.cert),
			strength: pass, expiry: pass,
		},
		"Generated": {
			reason:   "without a certificate of the administrator, the generated one is checked",
			state:    controller("default", "") + secret("router-certs-default", good),
			strength: pass, expiry: pass,
		},
		"ECDSA": {
			reason:   "an ECDSA key of 224 bits is accepted",
			state:    controller("default", "custom") + secret("custom", certificate(t, "*.apps", ecdsaKey(t, elliptic.P224()), 365*day, root)),
			strength: pass, expiry: pass,
		},
		"Ed25519": {
			reason:   "an Ed25519 key is accepted",
			state:    controller("default", "custom") + secret("custom", certificate(t, "*.apps", edKey, 365*day, root)),
			strength: pass, expiry: pass,
		},
		"RSA1024": {
			reason: "the case of the enhancement: the new OpenSSL rejects a short key",
			state:  controller("default", "custom") + secret("custom", certificate(t, "*.apps.example.com", weakKey, 365*day, root)),
			strength: checktest.Want{
				Outcome: preflight.Fail, Reason: "CertificateRejected", Objects: []string{"custom"},
				Messages: []string{
					"Secret openshift-ingress/custom, the default certificate of IngressController default",
					`"CN=*.apps.example.com" has an RSA key of 1024 bits, less than 2048`,
				},
				Remedies: []string{
					"oc create secret tls default-new -n openshift-ingress --cert=tls.crt --key=tls.key",
					`oc patch ingresscontroller default -n openshift-ingress-operator --type=merge -p '{"spec":{"defaultCertificate":{"name":"default-new"}}}'`,
				},
			},
			expiry: pass,
		},
		"SHA1": {
			reason: "a signature with SHA-1 is rejected",
			state: controller("default", "custom") + secret("custom", signed(t, x509.SHA1WithRSA,
				&x509.Certificate{Subject: pkix.Name{CommonName: "*.apps"}, NotAfter: time.Now().Add(365 * day)}, key, root)),
			strength: rejected(`"CN=*.apps" has a signature with SHA1-RSA`),
			expiry:   pass,
		},
		"WeakIssuer": {
			reason:   "the key of a root is checked, its signature is not",
			state:    controller("default", "custom") + secret("custom", certificate(t, "*.apps", key, 365*day, weakRoot), weakRoot.cert),
			strength: rejected(`"CN=Weak root" has an RSA key of 1024 bits`),
			expiry:   pass,
		},
		"ExpiresSoon": {
			reason:   "a certificate that expires soon results in a warning",
			state:    controller("default", "custom") + secret("custom", certificate(t, "*.apps", key, 9*day, root)),
			strength: pass,
			expiry: checktest.Want{
				Outcome: preflight.Warn, Reason: "CertificateExpiry", Objects: []string{"custom"},
				Messages: []string{"IngressController default, expires on " + time.Now().Add(9*day).UTC().Format(time.DateOnly)},
				Remedies: []string{"oc create secret tls default-new"},
			},
		},
		"IssuerExpired": {
			reason:   "a chain expires with the first of its certificates",
			state:    controller("default", "custom") + secret("custom", good, certificate(t, "Intermediate", key, -day, root)),
			strength: pass,
			expiry: checktest.Want{
				Outcome: preflight.Fail, Reason: "CertificateExpiry", Objects: []string{"custom"},
				Messages: []string{"expired on " + time.Now().Add(-day).UTC().Format(time.DateOnly)},
			},
		},
		"SecondController": {
			reason: "every ingress controller is checked, and the message names the affected one",
			state: controller("default", "") + secret("router-certs-default", good) + controller("internal", "custom") + secret("custom",
				certificate(t, "*.internal", weakKey, 365*day, root)),
			strength: rejected("IngressController internal"),
			expiry:   pass,
		},
		"SecretMissing": {
			reason:   "with a missing Secret the check is inconclusive",
			state:    controller("default", "custom"),
			strength: unknown(`cannot read Secret openshift-ingress/custom`, "not found"),
			expiry:   unknown(`not found`),
		},
		"NoPEM": {
			reason:   "with a Secret without a certificate the check is inconclusive",
			state:    controller("default", "custom") + secretOf("custom", "garbage"),
			strength: unknown("no certificate in PEM"),
			expiry:   unknown("no certificate in PEM"),
		},
		"UnknownCurve": {
			reason:   "with an unsupported key the check is inconclusive",
			state:    controller("default", "custom") + secretOf("custom", prime192),
			strength: unknown("certificate 1: ", "unsupported elliptic curve"),
			expiry:   unknown("unsupported elliptic curve"),
		},
		"Forbidden": {
			reason:   "without permission the check is inconclusive, and the message names the missing permission",
			run:      env.RunUnprivileged,
			strength: unknown("ingresscontrollers.operator.openshift.io is forbidden"),
			expiry:   unknown("ingresscontrollers.operator.openshift.io is forbidden"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			env.Apply(t, tc.state)
			run := env.Run
			if tc.run != nil {
				run = tc.run
			}
			report := run(t)
			if strings.Contains(report.Output, "SECRET-KEY") {
				t.Errorf("%s: the output must not contain the private key:\n%s", tc.reason, report.Output)
			}
			report.Expect(t, tc.reason, "DefaultCertificate", tc.strength)
			report.Expect(t, tc.reason, "DefaultCertificateExpiry", tc.expiry)
		})
	}

	t.Run("Output", func(t *testing.T) {
		env.Apply(t, controller("default", "custom")+secret("custom", certificate(t, "*.apps.example.com", weakKey, 365*day, root)))
		env.ExpectOutput(t)
	})
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-ingress-operator", "ingress-preflight").ExpectJob(t)
}

func TestManifest(t *testing.T) {
	preflighttest.Manifest(t, ".", "manifests/0000_50_cluster-ingress-operator_10_preflight.yaml", preflight.ManifestOptions{
		Name:      "ingress-preflight",
		Namespace: "openshift-ingress-operator",
		Image:     "quay.io/openshift/origin-cluster-ingress-operator:latest",
	})
}
