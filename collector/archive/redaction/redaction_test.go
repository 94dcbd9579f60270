package redaction_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/archive/redaction"
)

// learned are the names of a cluster with these objects.
func learned(t *testing.T, objects ...any) *redaction.Names {
	t.Helper()
	of := redaction.New(redaction.Known{
		Nodes:   [][]string{{"node-10", "node-10.corp.test"}, {"node-1"}, {"ip-10-0-1-5.ec2.internal"}, {"master"}, {"worker.corp.test"}},
		Domains: []string{"prod.corp.test", "openshift.io"}, Groups: []string{"widgets.acme.test"},
	})
	for _, object := range objects {
		of.Learn(object)
	}
	if err := of.Seal(); err != nil {
		t.Fatal(err)
	}
	return of
}

func TestText(t *testing.T) {
	for text, tc := range map[string]struct{ want, reason string }{
		"node-1":                                  {"redacted-node-3", "nodes keep their order"},
		"node-10":                                 {"redacted-node-4", "the longest name counts"},
		"node-10.corp.test":                       {"redacted-node-4", "a host has the replacement of its node"},
		"node-100":                                {"node-100", "it is another name"},
		"etcd-node-10":                            {"etcd-redacted-node-4", "the name of a static pod"},
		"node-1-debug node-10, x":                 {"redacted-node-3-debug redacted-node-4, x", "names in a text"},
		"system:node:node-1":                      {"system:node:redacted-node-3", "the user of a kubelet"},
		"ip-10-0-1-5":                             {"redacted-node-1", "the first part of a qualified name"},
		"ip-10-0-1-5.ec2.internal":                {"redacted-node-1", "the qualified name"},
		"node-role.kubernetes.io/master":          {"node-role.kubernetes.io/master", "an ordinary word keeps its meaning"},
		"worker worker.corp.test":                 {"worker redacted-node-5", "only the qualified name"},
		"https://api.prod.corp.test:6443":         {"https://api.redacted-1.example.com:6443", "the domain of the cluster"},
		"API.Prod.corp.test.":                     {"API.redacted-1.example.com.", "domains have no case"},
		"config.openshift.io/v1":                  {"config.openshift.io/v1", "an API group"},
		"machine-config-operator.openshift-x.svc": {"machine-config-operator.openshift-x.svc", "a Service"},
		"https://proxy.acme.test:8080/x":          {"https://redacted-2.example.com:8080/x", "the host of a URL"},
		"registry.acme.test/ocp/x@sha256:00":      {"redacted-2.example.com/ocp/x@sha256:00", "the host of an image"},
		"https://quay.io/x":                       {"https://quay.io/x", "a domain of a vendor"},
		"registry.acme.test/ocp/x:4.19":           {"redacted-2.example.com/ocp/x:4.19", "the host of an image with a tag"},
		"at acme.quay.io/x/y:1":                   {"at redacted-1.example.com/x/y:1", "a host of a customer in the domain of a vendor"},
		"db-0.rack7.internal is slow":             {"redacted-1.example.com is slow", "a host of a private network"},
		"ip-10-0-9-9 left":                        {"ip-10-0-0-1 left", "an address in the name of a machine that is gone"},
		"mail ops@mail.test":                      {"mail ops@redacted-1.example.com", "the domain of a mail address"},
		"https://acme.test widgets.acme.test/v1":  {"https://acme.test widgets.acme.test/v1", "a domain that ends an API group"},
		"10.0.1.5, 10.0.1.6 10.0.1.5":             {"10.0.0.1, 10.0.0.2 10.0.0.1", "addresses"},
		"10.0.1.5:6443 fd00::5 [fd00::6]:443":     {"10.0.0.1:6443 2001:db8::1 [2001:db8::2]:443", "addresses with ports"},
		"10.128.0.0/14 127.0.0.1 ::1 0.0.0.0":     {"10.0.0.1/14 127.0.0.1 ::1 0.0.0.0", "addresses with a meaning stay"},
		"4.19.3 v1.31.8 5.14.0-427.13.1.el9":      {"4.19.3 v1.31.8 5.14.0-427.13.1.el9", "versions"},
		"2026-11-25T10:12:00Z 0a:1b:2c:3d:4e:5f":  {"2026-11-25T10:12:00Z 0a:1b:2c:3d:4e:5f", "times and hardware addresses"},
		"":                                        {"", "nothing"},
	} {
		if got := learned(t, text).Text(text); got != tc.want {
			t.Errorf("%q became %q, want %q: %s", text, got, tc.want, tc.reason)
		}
	}
}

func TestObject(t *testing.T) {
	object := map[string]any{
		"node-1": []any{"10.0.1.5", int64(3), nil, true},
		"a":      map[string]any{"caBundle": "LS0t", "ca": "-----BEGIN CERTIFICATE-----", "b": "10.0.1.6", "hostname": "x1.elb.test"},
	}
	of := learned(t, object)
	want := map[string]any{
		"redacted-node-3": []any{"10.0.0.1", int64(3), nil, true},
		"a":               map[string]any{"caBundle": "LS0t", "ca": "", "b": "10.0.0.2", "hostname": "redacted-2.example.com"},
	}
	if diff := cmp.Diff(want, of.Object(object)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"master"}, of.Kept()); diff != "" {
		t.Errorf("kept; -want, +got:\n%s", diff)
	}
}

// TestCertificates holds that of certificates the validity stays, on which findings rest.
func TestCertificates(t *testing.T) {
	from, until := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	issue := func(name string) string {
		public, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		of := &x509.Certificate{
			SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"api.prod.corp.test"},
			NotBefore: from, NotAfter: until,
		}
		der, err := x509.CreateCertificate(nil, of, of, public, key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))
	got, ok := learned(t).Object("node-1\n" + issue("api.prod.corp.test") + private + issue("corp-signer@1780000000") + "10.0.1.5").(string)
	if again := learned(t).Object(got); !ok || again != got {
		t.Errorf("%q is %q when it is redacted again", got, again)
	}
	var names []string
	for rest := []byte(got); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatalf("beside the certificates stays %q", rest)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if names = append(names, certificate.Subject.CommonName); !certificate.NotBefore.Equal(from) || !certificate.NotAfter.Equal(until) ||
			len(certificate.DNSNames) > 0 {
			t.Errorf("got %+v, want the validity and no name", certificate)
		}
	}
	if diff := cmp.Diff([]string{"", "@"}, names); diff != "" {
		t.Errorf("names; -want, +got:\n%s", diff)
	}
}

// objects have names before what shows that they are some, and keys that are addresses.
func objects() []any {
	addresses := map[string]any{}
	for i := range 20 {
		addresses[fmt.Sprintf("10.1.2.%d", i)] = fmt.Sprintf("10.1.2.%d", 20-i)
	}
	return []any{
		map[string]any{"message": "registry.acme.test, proxy.acme.test and shop.apps.prod.corp.test do not respond"},
		map[string]any{"spec": map[string]any{"image": "registry.acme.test:5000/shop/cart:v1"}},
		map[string]any{"spec": map[string]any{"httpProxy": "http://proxy.acme.test:3128", "noProxy": ".intra.test,10.1.0.0/16"}},
		map[string]any{"message": "x.intra.test of customer.openshift.com at db.rack7.internal"},
		map[string]any{"status": map[string]any{"ingress": []any{map[string]any{"host": "customer.openshift.com"}}}},
		map[string]any{"status": addresses, "message": "10.1.2.7 at node-10, ip-10-1-2-7"},
		map[string]any{"metadata": map[string]any{"labels": map[string]any{"registry.acme.test/role": "node-1", "a": "worker.corp.test"}}},
	}
}

// TestAttacksOnRedaction holds that no original name is left, and that each has the same replacement, in whatever order
// the objects and their fields are read.
func TestAttacksOnRedaction(t *testing.T) {
	var want []any
	for seed := range uint64(500) {
		all := objects()
		order := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))
		var shuffled []any
		for _, at := range order {
			shuffled = append(shuffled, all[at])
		}
		of := learned(t, shuffled...)
		got := make([]any, len(all))
		for _, at := range order {
			got[at] = of.Object(all[at])
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("order %v; -first order, +this one:\n%s", order, diff)
		}
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, original := range []string{"acme", "corp", "intra", "customer", "rack7", "10.1.", "10-1-", `"node-1`} {
		if strings.Contains(string(text), original) {
			t.Errorf("%q is left in %s", original, text)
		}
	}
	if addresses, ok := want[5].(map[string]any)["status"].(map[string]any); !ok || len(addresses) != 20 {
		t.Errorf("got %v, want as many keys as before", want[5])
	}
}

// FuzzText holds that texts that have no name stay, and that a replacement is the same each time.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"node-1", "a.b.c", "https://x.y/z", "1.2.3.4", "a::b", "...---", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		of := learned(t, text)
		if first, second := of.Text(text), of.Text(text); first != second {
			t.Errorf("%q became %q, then %q", text, first, second)
		}
	})
}
