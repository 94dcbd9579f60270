package credential_test

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

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/runner/launch/credential"
)

// webToken returns a token with these claims, whose signature is none.
func webToken(claims string) string {
	return strings.Join([]string{
		base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"k"}`)), base64.RawURLEncoding.EncodeToString([]byte(claims)),
		"c2lnbmF0dXJl",
	}, ".")
}

// certificate returns a certificate in PEM.
func certificate(t *testing.T, change func(*x509.Certificate)) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	change(template)
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
}

func inBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// kubeconfigOf returns a kubeconfig with a user.
func kubeconfigOf(user string) string {
	return "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: https://api.example.com:6443}\n" +
		"users:\n- name: u\n  user: " + user +
		"\n"
}

func TestAttacksByCredentialsInSecrets(t *testing.T) {
	const (
		accountToken = "a token of a ServiceAccount"
		bootstrap    = "a bootstrap token"
		kubeconfig   = "a kubeconfig with credentials"
		client       = "a client certificate of the cluster's own users"
	)
	token := webToken(`{"iss":"https://kubernetes.default.svc","sub":"system:serviceaccount:kube-system:admin","exp":1}`)
	masters := certificate(t, func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: "admin", Organization: []string{"dev", "system:masters"}}
	})
	var lines bytes.Buffer
	for text := inBase64(masters); text != ""; text = text[min(64, len(text)):] {
		fmt.Fprintln(&lines, text[:min(64, len(text))])
	}
	for name, tc := range map[string]struct {
		reason string
		kind   corev1.SecretType
		value  string
		want   string
	}{
		"TokenType": {
			reason: "its token is written by a controller after the Secret was created",
			kind:   corev1.SecretTypeServiceAccountToken, want: accountToken,
		},
		"Token": {
			reason: "the type of a Secret says nothing about its values", kind: corev1.SecretTypeOpaque, value: token,
			want: accountToken,
		},
		"TokenInText": {
			reason: "a header, as in the configuration of a client", value: "authorization: Bearer " + token + "\r\n",
			want: accountToken,
		},
		"TokenAsPassword": {
			reason: "the registry of OpenShift accepts a token as a password", kind: corev1.SecretTypeDockerConfigJson,
			value: `{"auths":{"registry:5000":{"auth":"` + inBase64("serviceaccount:"+token) + `"}}}`, want: accountToken,
		},
		"TokenEncodedTwice": {
			reason: "a manifest with the data of a Secret",
			value:  "data:\n  token: " + inBase64(inBase64(token)) + "\nkind: Secret\n", want: accountToken,
		},
		"TokenOfAnIssuer": {
			reason: "the subject is not an account of the cluster",
			value:  webToken(`{"iss":"https://accounts.example.com","sub":"alice"}`),
		},
		"TokenInvalid":    {reason: "no claims", value: "eyJhbGciOiJub25lIn0.bm90LWpzb24.c2lnbmF0dXJl"},
		"OAuth":           {reason: "oc whoami -t", value: "sha256~" + strings.Repeat("aB3_", 10) + "xyz", want: "an OAuth access token"},
		"ImageDigest":     {reason: "a digest is no token", value: "quay.io/a@sha256:" + strings.Repeat("0", 64)},
		"BootstrapType":   {reason: "the type of kubeadm", kind: "bootstrap.kubernetes.io/token", want: bootstrap},
		"Bootstrap":       {reason: "a token to join a node", value: "abcdef.0123456789abcdef\n", want: bootstrap},
		"HostName":        {reason: "a name with a dot", value: "server.internal.example.com"},
		"KubeconfigToken": {reason: "a token of any kind", value: kubeconfigOf("{token: opaque}"), want: kubeconfig},
		"KubeconfigJSON": {
			reason: "JSON is YAML", value: `{"users":[{"name":"u","user":{"username":"admin","password":"p"}}]}`,
			want: kubeconfig,
		},
		"KubeconfigKey": {
			reason: "a certificate with its key", value: kubeconfigOf("{client-certificate-data: eA==, client-key-data: eA==}"),
			want: kubeconfig,
		},
		"KubeconfigExec": {reason: "the program is in the image of the check", value: kubeconfigOf(
			"{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/login, interactiveMode: Never}}"), want: kubeconfig},
		"KubeconfigEncoded": {reason: "as in a Secret of Hive", value: inBase64(kubeconfigOf("{token: opaque}")), want: kubeconfig},
		"KubeconfigOfPod": {
			reason: "the token is that of the pod",
			value:  kubeconfigOf("{tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}"),
		},
		"ListOfUsers": {reason: "users of another program", value: "users:\n- name: alice\n  user: alice\n"},
		"Masters":     {reason: "the group of cluster-admins", value: masters, want: client},
		"MastersEncoded": {
			reason: "the value of a kubeconfig without its key, in lines",
			value:  "client-certificate-data:\n" + lines.String() + "users: []", want: client,
		},
		"Component": {
			reason: "the user of a component", want: client,
			value: certificate(t, func(c *x509.Certificate) { c.Subject.CommonName = "system:kube-controller-manager" }),
		},
		"FrontProxy": {
			reason: "it names any user in a header", want: client,
			value: certificate(t, func(c *x509.Certificate) { c.Subject.CommonName = "front-proxy-client" }),
		},
		"SecondCertificate": {
			reason: "a chain", want: client,
			value: certificate(t, func(c *x509.Certificate) { c.Subject.CommonName = "web" }) + masters,
		},
		"Kubelet": {reason: "the certificate of a server", value: certificate(t, func(c *x509.Certificate) {
			c.Subject.CommonName, c.ExtKeyUsage = "system:node:a", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})},
		"Authority": {reason: "it signs, and is no client", value: certificate(t, func(c *x509.Certificate) {
			c.Subject.CommonName, c.IsCA, c.BasicConstraintsValid = "system:ca", true, true
		})},
		"Database": {
			reason: "a client of another server",
			value:  certificate(t, func(c *x509.Certificate) { c.Subject.CommonName = "postgres" }),
		},
		"Password": {reason: "most Secrets", value: "correct horse battery staple"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Type: tc.kind, Data: map[string][]byte{"a": []byte("ordinary"), "value": []byte(tc.value)}}
			if got := credential.Of(secret); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// A bootstrap token is in two values of its Secret.
func TestBootstrapTokenInParts(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef")}}
	if got := credential.Of(secret); got != "a bootstrap token" {
		t.Errorf("%q, want a bootstrap token", got)
	}
}

func FuzzOf(f *testing.F) {
	f.Add([]byte(kubeconfigOf("{token: opaque}")))
	f.Add([]byte("users: &a [*a, *a]\n"))
	f.Add([]byte(webToken(`{"sub":"system:serviceaccount:a:b"}`)))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, value []byte) {
		got := credential.Of(&corev1.Secret{Data: map[string][]byte{"value": value}})
		if got != "" && len(value) > 0 && strings.Contains(got, string(value)) && len(value) > len("a kubeconfig with credentials") {
			t.Errorf("the description %q has the content", got)
		}
	})
}
