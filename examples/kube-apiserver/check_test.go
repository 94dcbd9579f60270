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
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

const day = 24 * time.Hour

// chain is certificates in PEM that end after the given times.
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

// secret has the text for a certificate; its key is none, since no check may
// need it.
func secret(name, text string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: %s, namespace: openshift-config}, data: {tls.crt: %q, tls.key: %q}}\n",
		name, base64.StdEncoding.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte("SECRET-KEY")))
}

// apiServer serves the certificates of the Secrets.
func apiServer(secrets ...string) string {
	var named []string
	for _, name := range secrets {
		named = append(named, fmt.Sprintf("{names: [%s.example.com], servingCertificate: {name: %s}}", name, name))
	}
	return fmt.Sprintf("---\n{apiVersion: config.openshift.io/v1, kind: APIServer, metadata: {name: cluster}, spec: {servingCerts: {namedCertificates: [%s]}}}\n",
		strings.Join(named, ", "))
}

// signer is a Secret of the operator with those times from now on.
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

// question is one case of either check.
type question struct {
	reason string
	state  string
	ask    func(*testing.T, ...string) checktest.Answer
	want   checktest.Want
}

func run(t *testing.T, stage *checktest.Stage, check string, questions map[string]question) {
	t.Helper()
	for name, q := range questions {
		t.Run(name, func(t *testing.T) {
			stage.Apply(t, q.state)
			ask := stage.Ask
			if q.ask != nil {
				ask = q.ask
			}
			answer := ask(t)
			if strings.Contains(answer.Output, "SECRET-KEY") {
				t.Errorf("%s: but the private key is nobody's business:\n%s", q.reason, answer.Output)
			}
			answer.Expect(t, q.reason, check, q.want)
		})
	}
}

func expires(outcome preflight.Outcome, remedy, secret string, says ...string) checktest.Want {
	return checktest.Want{Outcome: outcome, Reason: "CertificateExpiry", Objects: []string{secret}, Says: says, Remedies: []string{remedy}}
}

func unknown(says ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Says: says}
}

func TestServingCertificates(t *testing.T) {
	stage := checktest.New(t, local, "openshift-kube-apiserver-operator", "kube-apiserver-preflight")
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	const remedy = "oc create secret tls api -n openshift-config --cert=tls.crt --key=tls.key --dry-run=client -o yaml | oc replace -f -"
	run(t, stage, "ServingCertificates", map[string]question{
		"None": {
			reason: "most administrators provide none, which is fine",
			state:  apiServer(),
			want:   pass,
		},
		"Good": {
			reason: "a year is enough for any update",
			state:  apiServer("api") + secret("api", chain(t, 365*day, 3650*day)),
			want:   pass,
		},
		"Soon": {
			reason: "a week is enough for the update, but the administrator should hear of it",
			state:  apiServer("api") + secret("api", chain(t, 7*day, 3650*day)),
			want: expires(preflight.Warn, remedy, "api",
				"a certificate in Secret openshift-config/api ends at "+time.Now().Add(7*day).UTC().Format(time.DateOnly)),
		},
		"During": {
			reason: "what ends in an hour ends during the update, and oc is locked out",
			state:  apiServer("api") + secret("api", chain(t, time.Hour)),
			want:   expires(preflight.Fail, remedy, "api", "Secret openshift-config/api ends at"),
		},
		"IssuerExpired": {
			reason: "a chain ends with the first of its certificates",
			state:  apiServer("api") + secret("api", chain(t, 365*day, -day)),
			want:   expires(preflight.Fail, remedy, "api", "ends at "+time.Now().Add(-day).UTC().Format(time.DateOnly)),
		},
		"Second": {
			reason: "each of the certificates counts",
			state:  apiServer("internal", "api") + secret("internal", chain(t, 365*day)) + secret("api", chain(t, time.Hour)),
			want:   expires(preflight.Fail, remedy, "api"),
		},
		"SecretMissing": {
			reason: "what is not there cannot be judged",
			state:  apiServer("api"),
			want:   unknown(`cannot read a certificate in openshift-config: secrets "api" not found`),
		},
		"NoPEM": {
			reason: "nor can what is no certificate",
			state:  apiServer("api") + secret("api", "garbage"),
			want:   unknown("cannot read the certificate in Secret openshift-config/api: "),
		},
		"NoConfiguration": {
			reason: "a cluster without the configuration is not a pass",
			want:   unknown(`apiservers.config.openshift.io "cluster" not found`),
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
			want:   unknown(`apiservers.config.openshift.io "cluster" is forbidden`),
		},
	})
}

func TestSignerCertificates(t *testing.T) {
	stage := checktest.New(t, local, "openshift-kube-apiserver-operator", "kube-apiserver-preflight")
	const kubelet = "kube-apiserver-to-kubelet-signer"
	run(t, stage, "SignerCertificates", map[string]question{
		"Good": {
			reason: "at three quarters the operator has time left",
			state:  signer(kubelet, -270*day, 95*day) + signer("loadbalancer-serving-signer", -day, 3649*day),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"FirstDay": {
			reason: "signers of the first day live for one day: an end within the update is renewed on the way",
			state:  signer(kubelet, -12*time.Hour, 12*time.Hour),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"Overdue": {
			reason: "the operator has missed its time, and something must hold it up",
			state:  signer(kubelet, -335*day, 30*day),
			want: expires(preflight.Warn, "oc describe clusteroperator kube-apiserver # says what keeps it from renewing "+kubelet, kubelet,
				"Secret openshift-kube-apiserver-operator/"+kubelet+" ends at "+time.Now().Add(30*day).UTC().Format(time.DateOnly)),
		},
		"During": {
			reason: "overdue and about to end: kubelets would not trust the API server while they update",
			state:  signer(kubelet, -364*day, 10*time.Hour),
			want:   expires(preflight.Fail, kubelet, kubelet),
		},
		"Expired": {
			reason: "what has ended is not better",
			state:  signer(kubelet, -365*day, -time.Hour) + signer("aggregator-client-signer", -day, 29*day),
			want:   expires(preflight.Fail, kubelet, kubelet),
		},
		"NoLifetime": {
			reason: "a signer that does not say is not a pass",
			state:  signerOf(kubelet, "2026-01-01T00:00:00Z", ""),
			want:   unknown("cannot read the lifetime that Secret openshift-kube-apiserver-operator/" + kubelet + " is annotated with"),
		},
		"NoTime": {
			reason: "nor is one that says nonsense",
			state:  signerOf(kubelet, "yesterday", "2036-01-01T00:00:00Z"),
			want:   unknown(`"yesterday"`),
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
			want:   unknown("cannot list the operator's signers: secrets is forbidden"),
		},
	})
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-kube-apiserver-operator", "kube-apiserver-preflight").ExpectJob(t)
}
