// Package manifests_test answers: do the manifests of the controller build, and are those
// that are generated current?
package manifests_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/golden"
)

const (
	manifests = "../../manifests"
	namespace = "openshift-update-preflight"
	name      = "update-preflight"
)

// build builds a kustomization as "kubectl apply -k" does.
func build(t *testing.T, directory string) []*unstructured.Unstructured {
	t.Helper()
	infos, err := resource.NewLocalBuilder().Unstructured().Local().
		FilenameParam(false, &resource.FilenameOptions{Kustomize: directory}).Flatten().Do().Infos()
	if err != nil {
		t.Fatal(err)
	}
	var built []*unstructured.Unstructured
	for _, info := range infos {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("%s is a %T", info.Name, info.Object)
		}
		built = append(built, object)
	}
	return built
}

// expectCurrent compares a generated manifest.
func expectCurrent(t *testing.T, file string, want []byte) {
	t.Helper()
	golden.Compare(t, filepath.Join(manifests, file), want)
}

// write writes objects as YAML documents below a comment.
func write(t *testing.T, comment string, objects []any) []byte {
	t.Helper()
	page := bytes.NewBufferString(comment)
	for i, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			page.WriteString("---\n")
		}
		page.Write(text)
	}
	return page.Bytes()
}

// overlay builds manifests with these switches.
func overlay(t *testing.T, base string, switches ...string) []*unstructured.Unstructured {
	t.Helper()
	root, err := filepath.Abs(manifests)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	relative, err := filepath.Rel(directory, root)
	if err != nil {
		t.Fatal(err)
	}
	kustomization := map[string]any{"resources": []string{filepath.Join(relative, base)}}
	var components []string
	for _, each := range switches {
		components = append(components, filepath.Join(relative, "switches", each))
	}
	kustomization["components"] = components
	if err := os.WriteFile(filepath.Join(directory, "kustomization.yaml"), write(t, "", []any{kustomization}), 0o600); err != nil {
		t.Fatal(err)
	}
	return build(t, directory)
}

// arguments are those of the controller.
func arguments(t *testing.T, built []*unstructured.Unstructured) []string {
	t.Helper()
	for _, object := range built {
		if object.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatalf("the containers of the Deployment are %v: %v", containers, err)
		}
		container, _ := containers[0].(map[string]any)
		args, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			t.Fatal(err)
		}
		return args
	}
	t.Fatal("there is no Deployment")
	return nil
}

// Each switch adds its argument, in any combination, to the manifests of both platforms.
func TestSwitchesCompose(t *testing.T) {
	certificate, clients := "--metrics-cert-dir=/etc/update-preflight/serving-cert", "--metrics-client-ca=cluster"
	for name, tc := range map[string]struct {
		reason, base string
		switches     []string
		want         []string
	}{
		"OpenShift":  {reason: "all switches are off by default", base: ".", want: []string{certificate, clients}},
		"Kubernetes": {reason: "the certificate is self-signed", base: "kubernetes", want: []string{}},
		"Alert": {
			reason: "a switch is an argument", base: ".", switches: []string{"alert"},
			want: []string{certificate, clients, "--signal=alert"},
		},
		"ClusterOperator": {
			reason: "a switch is an argument", base: ".", switches: []string{"cluster-operator"},
			want: []string{certificate, clients, "--signal=clusterOperator"},
		},
		"Warn": {
			reason: "the policy warns by default", base: ".", switches: []string{"admission"},
			want: []string{certificate, clients, "--signal=admission=Warn"},
		},
		"Hosted": {
			reason: "hosted clusters are checked", base: ".", switches: []string{"hosted-clusters", "hosted-admission"},
			want: []string{certificate, clients, "--hosted-clusters=20", "--hosted-admission=Warn"},
		},
		"Signing": {
			reason: "verdicts are signed", base: ".", switches: []string{"signing"},
			want: []string{certificate, clients, "--signing-secret=" + signingName},
		},
		"Page": {
			reason: "a page is served", base: ".", switches: []string{"page"},
			want: []string{certificate, clients, "--page-bind-address=:9443", "--page-cert-dir=/etc/update-preflight/page-serving-cert"},
		},
		"HostedDeny": {
			reason: "their updates are denied", base: "kubernetes",
			switches: []string{"hosted-clusters", "hosted-admission-deny"}, want: []string{"--hosted-clusters=20", "--hosted-admission=Deny"},
		},
		"All": {
			reason: "switches are independent", base: "kubernetes", switches: []string{"alert", "cluster-operator", "admission-deny"},
			want: []string{"--signal=alert", "--signal=clusterOperator", "--signal=admission=Deny"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, arguments(t, overlay(t, tc.base, tc.switches...))); diff != "" {
				t.Errorf("%s: arguments (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Every manifest is used by one of the kustomizations, and every directory of a switch is
// tested above.
func TestEveryManifestIsUsed(t *testing.T) {
	var used []string
	for _, directory := range []string{".", "base", "kubernetes"} {
		text, err := os.ReadFile(filepath.Join(manifests, directory, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			for field := range strings.FieldsSeq(line) {
				used = append(used, filepath.Join(directory, field))
			}
		}
	}
	for _, directory := range []string{"base", "openshift"} {
		files, err := filepath.Glob(filepath.Join(manifests, directory, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			relative, err := filepath.Rel(manifests, file)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(file) != "kustomization.yaml" && !slices.Contains(used, relative) {
				t.Errorf("%s is in no kustomization", relative)
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(manifests, "switches"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, entry := range entries {
		found[entry.Name()] = true
	}
	want := []string{
		"admission", "admission-deny", "alert", "cluster-operator", "hosted-admission", "hosted-admission-deny",
		"hosted-clusters", "page", "signing",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("switches (-want, +got):\n%s", diff)
	}
}
