package redaction_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/archive/redaction"
)

func names() *redaction.Names {
	return redaction.New([][]string{{"node-10", "node-10.corp.test"}, {"node-1"}, {"ip-10-0-1-5.ec2.internal"}, {"master"}, {"worker.corp.test"}}, []string{"prod.corp.test", "openshift.io"})
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
		"10.0.1.5, 10.0.1.6 10.0.1.5":             {"10.0.0.1, 10.0.0.2 10.0.0.1", "addresses"},
		"10.0.1.5:6443 fd00::5 [fd00::6]:443":     {"10.0.0.1:6443 2001:db8::1 [2001:db8::2]:443", "addresses with ports"},
		"10.128.0.0/14 127.0.0.1 ::1 0.0.0.0":     {"10.0.0.1/14 127.0.0.1 ::1 0.0.0.0", "addresses with a meaning stay"},
		"4.19.3 v1.31.8 5.14.0-427.13.1.el9":      {"4.19.3 v1.31.8 5.14.0-427.13.1.el9", "versions"},
		"2026-11-25T10:12:00Z 0a:1b:2c:3d:4e:5f":  {"2026-11-25T10:12:00Z 0a:1b:2c:3d:4e:5f", "times and hardware addresses"},
		"":                                        {"", "nothing"},
	} {
		if got := names().Text(text); got != tc.want {
			t.Errorf("%q became %q, want %q: %s", text, got, tc.want, tc.reason)
		}
	}
}

func TestObject(t *testing.T) {
	of := names()
	object := map[string]any{
		"node-1": []any{"10.0.1.5", int64(3), nil, true},
		"a":      map[string]any{"caBundle": "LS0t", "ca": "-----BEGIN CERTIFICATE-----", "b": "10.0.1.6", "hostname": "x1.elb.test"},
	}
	want := map[string]any{
		"redacted-node-3": []any{of.Text("10.0.1.5"), int64(3), nil, true},
		"a":               map[string]any{"caBundle": "LS0t", "ca": "", "b": of.Text("10.0.1.6"), "hostname": "redacted-2.example.com"},
	}
	if diff := cmp.Diff(want, of.Object(object)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"master"}, of.Kept()); diff != "" {
		t.Errorf("kept; -want, +got:\n%s", diff)
	}
}

// FuzzText holds that texts that have no name stay, and that a replacement is the same each time.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"node-1", "a.b.c", "https://x.y/z", "1.2.3.4", "a::b", "...---", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		of := names()
		if first, second := of.Text(text), of.Text(text); first != second {
			t.Errorf("%q became %q, then %q", text, first, second)
		}
	})
}
