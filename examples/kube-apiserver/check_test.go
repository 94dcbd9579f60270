package main_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

const day = 24 * time.Hour

// chain returns certificates in PEM that expire after the given times.
func chain(t *testing.T, ends ...time.Duration) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, end := range ends {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "api.example.com"},
			NotBefore: time.Now().Add(-400 * day), NotAfter: time.Now().Add(end),
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// secret returns a Secret with the text as its certificate. Its key is invalid, because
// the check must not use it.
func secret(name, text string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: %s, namespace: "+
		"openshift-config}, data: {tls.crt: %q, tls.key: %q}}\n",
		name, base64.StdEncoding.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte("SECRET-KEY")))
}

// apiServer returns a configuration that serves the certificates of the Secrets.
func apiServer(secrets ...string) string {
	var named []string
	for _, name := range secrets {
		named = append(named, fmt.Sprintf("{names: [%s.example.com], servingCertificate: {name: %s}}", name, name))
	}
	return fmt.Sprintf("---\n{apiVersion: config.openshift.io/v1, kind: APIServer, metadata: {name: cluster}, spec: {servingCerts: "+
		"{namedCertificates: [%s]}}}\n",
		strings.Join(named, ", "))
}

// signer returns a Secret of the operator whose lifetime is relative to now.
func signer(name string, begin, end time.Duration) string {
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	return signerOf(name, at(begin), at(end))
}

func signerOf(name, begin, end string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata:
  name: %s
  namespace: openshift-kube-apiserver-operator
  labels: {auth.openshift.io/managed-certificate-type: signer}
  annotations: {auth.openshift.io/certificate-not-before: %q, auth.openshift.io/certificate-not-after: %q}
`, name, begin, end)
}

// testCase is a test case of either check.
type testCase struct {
	reason string
	state  string
	run    func(*testing.T, ...string) checktest.Report
	want   checktest.Want
}

func runCases(t *testing.T, env *checktest.Environment, check string, cases map[string]testCase) {
	t.Helper()
	for name, tc := range cases {
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
			report.Expect(t, tc.reason, check, tc.want)
		})
	}
}

func expires(outcome preflight.Outcome, remedy, secret string, messages ...string) checktest.Want {
	return checktest.Want{
		Outcome: outcome, Reason: "CertificateExpiry", Objects: []string{secret}, Messages: messages,
		Remedies: []string{remedy},
	}
}

func unknown(messages ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Messages: messages}
}

func TestServingCertificates(t *testing.T) {
	env := checktest.New(t, local, "openshift-kube-apiserver-operator", "kube-apiserver-preflight")
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	const remedy = "oc create secret tls api -n openshift-config --cert=tls.crt --key=tls.key --dry-run=client -o yaml | oc replace -f -"
	runCases(t, env, "ServingCertificates", map[string]testCase{
		"None": {
			reason: "without certificates of the administrator the check passes",
			state:  apiServer(),
			want:   pass,
		},
		"Good": {
			reason: "a certificate that is valid for a year passes",
			state:  apiServer("api") + secret("api", chain(t, 365*day, 3650*day)),
			want:   pass,
		},
		"Soon": {
			reason: "a certificate that expires in a week results in a warning",
			state:  apiServer("api") + secret("api", chain(t, 7*day, 3650*day)),
			want: expires(preflight.Warn, remedy, "api",
				"a certificate in Secret openshift-config/api expires at "+time.Now().Add(7*day).UTC().Format(time.DateOnly)),
		},
		"During": {
			reason: "a certificate that expires in an hour expires during the update, which locks clients out",
			state:  apiServer("api") + secret("api", chain(t, time.Hour)),
			want:   expires(preflight.Fail, remedy, "api", "Secret openshift-config/api expires at"),
		},
		"IssuerExpired": {
			reason: "a chain expires with the first of its certificates",
			state:  apiServer("api") + secret("api", chain(t, 365*day, -day)),
			want:   expires(preflight.Fail, remedy, "api", "expires at "+time.Now().Add(-day).UTC().Format(time.DateOnly)),
		},
		"Second": {
			reason: "every certificate is checked",
			state:  apiServer("internal", "api") + secret("internal", chain(t, 365*day)) + secret("api", chain(t, time.Hour)),
			want:   expires(preflight.Fail, remedy, "api"),
		},
		"SecretMissing": {
			reason: "with a missing Secret the check is inconclusive",
			state:  apiServer("api"),
			want:   unknown(`cannot read a certificate in openshift-config: secrets "api" not found`),
		},
		"NoPEM": {
			reason: "with a Secret without a certificate the check is inconclusive",
			state:  apiServer("api") + secret("api", "garbage"),
			want:   unknown("cannot read the certificate in Secret openshift-config/api: "),
		},
		"NoConfiguration": {
			reason: "a missing configuration is not a pass",
			want:   unknown(`apiservers.config.openshift.io "cluster" not found`),
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want:   unknown(`apiservers.config.openshift.io "cluster" is forbidden`),
		},
	})

	t.Run("Output", func(t *testing.T) {
		env.Apply(t, apiServer("api")+secret("api", chain(t, 7*day, 3650*day)))
		env.ExpectOutput(t)
	})
}

func TestSignerCertificates(t *testing.T) {
	env := checktest.New(t, local, "openshift-kube-apiserver-operator", "kube-apiserver-preflight")
	const kubelet = "kube-apiserver-to-kubelet-signer"
	runCases(t, env, "SignerCertificates", map[string]testCase{
		"Good": {
			reason: "after three quarters of the lifetime the renewal is not overdue",
			state:  signer(kubelet, -270*day, 95*day) + signer("loadbalancer-serving-signer", -day, 3649*day),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"FirstDay": {
			reason: "the first signers are valid for one day: the operator renews them during the update",
			state:  signer(kubelet, -12*time.Hour, 12*time.Hour),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"Overdue": {
			reason: "an overdue renewal results in a warning",
			state:  signer(kubelet, -335*day, 30*day),
			want: expires(preflight.Warn, "oc describe clusteroperator kube-apiserver", kubelet,
				"Secret openshift-kube-apiserver-operator/"+kubelet+" expires at "+time.Now().Add(30*day).UTC().Format(time.DateOnly)),
		},
		"During": {
			reason: "a signer that expires during the update results in a fail",
			state:  signer(kubelet, -364*day, 10*time.Hour),
			want:   expires(preflight.Fail, kubelet, kubelet),
		},
		"Expired": {
			reason: "an expired signer results in a fail",
			state:  signer(kubelet, -365*day, -time.Hour) + signer("aggregator-client-signer", -day, 29*day),
			want:   expires(preflight.Fail, kubelet, kubelet),
		},
		"NoLifetime": {
			reason: "a signer without an expiry is not a pass",
			state:  signerOf(kubelet, "2026-01-01T00:00:00Z", ""),
			want:   unknown("cannot parse the lifetime in the annotations of Secret openshift-kube-apiserver-operator/" + kubelet),
		},
		"NoTime": {
			reason: "a signer with a malformed lifetime is not a pass",
			state:  signerOf(kubelet, "yesterday", "2036-01-01T00:00:00Z"),
			want:   unknown(`"yesterday"`),
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want:   unknown("cannot list the signers of the operator: secrets is forbidden"),
		},
	})
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-kube-apiserver-operator", "kube-apiserver-preflight").ExpectJob(t)
}

func TestManifest(t *testing.T) {
	preflighttest.Manifest(t, ".", "manifests/0000_20_cluster-kube-apiserver-operator_10_preflight.yaml", preflight.ManifestOptions{
		Name:      "kube-apiserver-preflight",
		Namespace: "openshift-kube-apiserver-operator",
		Image:     "quay.io/openshift/origin-cluster-kube-apiserver-operator:latest",
	})
}
