package bundle_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/openshift/update-preflight/test/bundle"
)

// copied copies the manifests to a new directory, each file changed; without a change, as they are.
func copied(tb testing.TB, change func(file string, text []byte) []byte) string {
	tb.Helper()
	from, to := filepath.Join(root, "manifests"), filepath.Join(tb.TempDir(), "manifests")
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, relative), 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if change != nil {
			text = change(filepath.ToSlash(relative), text)
		}
		return os.WriteFile(filepath.Join(to, relative), text, 0o600)
	})
	if err != nil {
		tb.Fatal(err)
	}
	return to
}

// adds returns a change that appends a document to the manifests.
func adds(document string) func(string, []byte) []byte {
	return func(file string, text []byte) []byte {
		if file == "openshift/monitoring.yaml" {
			return append(append(text, "\n---\n"...), document...)
		}
		return text
	}
}

// replaces returns a change of one text of a file.
func replaces(tb testing.TB, in, old, replacement string) func(string, []byte) []byte {
	tb.Helper()
	return func(file string, text []byte) []byte {
		if file != in {
			return text
		}
		if !bytes.Contains(text, []byte(old)) {
			tb.Errorf("%s does not have %q", in, old)
		}
		return bytes.Replace(text, []byte(old), []byte(replacement), 1)
	}
}

const (
	deployment = "base/deployment.yaml"
	subject    = "subjects: [{kind: ServiceAccount, name: update-preflight, namespace: openshift-update-preflight}]\n"
	boundRole  = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: more, namespace: openshift-etcd}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [key], verbs: [get, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: more, namespace: openshift-etcd}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: more}
` + subject
)

// What the bundle would lose, or grant in another way, is an error that names it.
func TestRefusedManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(string, []byte) []byte
		want   string
	}{
		"Kind": {
			"OLM does not install it", adds("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: x}\n"),
			"cannot carry ValidatingAdmissionPolicy x",
		},
		"Group": {
			"the kind is that of another API", adds(
				"apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: x, namespace: openshift-update-preflight}\n"),
			"cannot carry Service openshift-update-preflight/x",
		},
		"OtherNamespace": {
			"OLM would create it in that of the operator",
			adds("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: openshift-config}\n"),
			"cannot carry ConfigMap openshift-config/x",
		},
		"UnknownRole": {
			"the rules are not known", adds("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x, namespace: " +
				"kube-system}\n" +
				"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}\n" + subject),
			"cannot carry RoleBinding kube-system/x",
		},
		"UnboundRole": {
			"OLM does not create it there", adds("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: x, namespace: " +
				"kube-system}\n"),
			"cannot carry Role kube-system/x",
		},
		"OtherSubject": {
			"a part of the binding would be lost", adds(strings.TrimSuffix(boundRole, "]\n") +
				", {kind: Group, name: admins, apiGroup: rbac.authorization.k8s.io}]\n"),
			"RoleBinding openshift-etcd/more has other subjects",
		},
		"Aggregated": {
			"its rules are those of the cluster", adds("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " +
				"x}\naggregationRule: {clusterRoleSelectors: [{}]}\n---\n" +
				"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: " +
				"rbac.authorization.k8s.io, kind: ClusterRole, name: x}\n" + subject),
			"ClusterRole x is aggregated",
		},
		"Deployments": {
			"which one is the controller?", adds("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: second, namespace: " +
				"openshift-update-preflight}\n"),
			"the bundle has one Deployment",
		},
		"Namespaces": {
			"OLM has one for the operator", adds("apiVersion: v1\nkind: Namespace\nmetadata: {name: second}\n"),
			"the bundle has one Namespace",
		},
		"SecondContainer": {
			"its image has a tag", replaces(t, deployment, "      containers:\n",
				"      containers:\n      - {name: proxy, image: 'quay.io/openshift/proxy:4.20'}\n"),
			`the image "quay.io/openshift/proxy:4.20" of the container proxy is not`,
		},
		"InitContainer": {
			"so has this one", replaces(t, deployment, "      containers:\n",
				"      initContainers:\n      - {name: wait, image: busybox}\n      containers:\n"),
			`the image "busybox" of the container wait is not`,
		},
		"Image": {
			"the image of the controller would not be replaced",
			replaces(t, deployment, "quay.io/openshift/origin-update-preflight:latest", "quay.io/other/name@sha256:"+strings.Repeat("b", 64)),
			"no container of Deployment openshift-update-preflight/update-preflight has the image",
		},
		"Annotation": {
			"OLM sets none of the Deployment", replaces(t, deployment, "metadata:\n", "metadata:\n  annotations: {a: b}\n"),
			"has annotations",
		},
		"PullSecret": {
			"OLM creates the ServiceAccount without it",
			replaces(t, "base/serviceaccount.yaml", "kind: ServiceAccount\n", "kind: ServiceAccount\nimagePullSecrets: [{name: x}]\n"),
			"ServiceAccount openshift-update-preflight/update-preflight has more than a name",
		},
		"Account": {
			"OLM gives rules to a ServiceAccount", replaces(t, deployment, "      serviceAccountName: update-preflight\n", ""),
			"has no serviceAccountName",
		},
		"Description": {
			"a field has no descriptor", replaces(t, "crd/preflight.openshift.io_updatepreflights.yaml",
				"                description: blockingOmitted is the number of further findings that\n                  block.\n", ""),
			"status.blockingOmitted has no description",
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := options()
			changed.Manifests = copied(t, tc.change)
			if _, err := bundle.Generate(changed); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// What the manifests gain is in the bundle, or changes nothing.
func TestCarriedManifests(t *testing.T) {
	plain := generate(t, options())
	for name, tc := range map[string]struct {
		reason string
		change func(string, []byte) []byte
		// want is in the ClusterServiceVersion, and widened among the permissions of all namespaces; equal: nothing changes.
		want    string
		widened []bundle.Widened
		equal   bool
	}{
		"Role": {
			reason: "a Role in a new namespace", change: adds(boundRole), want: "- key",
			widened: []bundle.Widened{{Namespace: "openshift-etcd", Role: "more", Permission: "delete secrets key"}},
		},
		"ReadRole": {
			reason: "all may be read everywhere, so nothing is wider",
			change: adds(strings.ReplaceAll(boundRole, "[get, delete]", "[get]")), want: "- key",
		},
		"SameRole": {
			reason: "OLM derives names from the rules",
			change: adds("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: again, namespace: openshift-config}\n" +
				"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: update-preflight}\n" + subject), equal: true,
		},
		"Label": {
			reason: "kustomize adds labels",
			change: replaces(t, "kustomization.yaml", "- pairs: {", "- pairs: {example.com/new: added, "), want: "example.com/new: added",
		},
		"Variable": {reason: "an environment variable", change: replaces(t, deployment, "        args: []",
			"        env: [{name: EXAMPLE, value: 'value'}]\n        args: []"), want: "name: EXAMPLE"},
		"Digest": {
			reason: "a second container by digest is a related image", want: "- image: quay.io/openshift/proxy@sha256:" + strings.Repeat("b", 64),
			change: replaces(t, deployment, "      containers:\n",
				"      containers:\n      - {name: proxy, image: 'quay.io/openshift/proxy@sha256:"+strings.Repeat("b", 64)+"'}\n"),
		},
		"Tag": {reason: "the image of the manifests has another tag", change: replaces(t, deployment, ":latest", ":v9"), equal: true},
		"CRLF": {reason: "git on Windows", change: func(_ string,
			text []byte,
		) []byte {
			return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
		}, equal: true},
	} {
		t.Run(name, func(t *testing.T) {
			changed := options()
			changed.Manifests = copied(t, tc.change)
			made := generate(t, changed)
			if equal := cmp.Equal(plain, made); equal != tc.equal {
				t.Errorf("%s: equal %v, want %v (-manifests, +changed):\n%s", tc.reason, equal, tc.equal,
					cmp.Diff(string(plain.Files[csv]), string(made.Files[csv])))
			}
			if !bytes.Contains(made.Files[csv], []byte(tc.want)) {
				t.Errorf("%s: the ClusterServiceVersion does not have %q", tc.reason, tc.want)
			}
			if diff := cmp.Diff(append(slices.Clone(plain.Widened), tc.widened...), made.Widened); diff != "" {
				t.Errorf("%s: wider permissions (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRefusedArguments(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		reason, version, image, bundleImage string
		want                                string // of the error; otherwise the version
	}{
		"Version":    {reason: "that of a tag", version: "v1.2.3", image: "quay.io/a/b" + digest, want: "1.2.3"},
		"Prerelease": {reason: "it has a tag, too", version: "v1.2.3-rc.1", image: "quay.io/a/b" + digest, want: "1.2.3-rc.1"},
		"BundleImage": {
			reason: "OLM v1 needs it", version: "v1.2.3", image: "quay.io/a/b" + digest, bundleImage: "quay.io/a/c" + digest,
			want: "1.2.3",
		},
		"Port":      {reason: "a registry with a port", version: "v1.2.3", image: "localhost:5000/b" + digest, want: "1.2.3"},
		"None":      {reason: "make bundle", want: "there is no version"},
		"NoImage":   {reason: "make bundle VERSION=v1.2.3", version: "v1.2.3", want: "give IMAGE="},
		"NoV":       {reason: "it is not that of a tag", version: "1.2.3", image: "quay.io/a/b" + digest, want: "does not begin with v"},
		"Short":     {reason: "it is not semantic", version: "v1.2", image: "quay.io/a/b" + digest, want: "is not semantic"},
		"Build":     {reason: "no object has such a name", version: "v1.2.3+1", image: "quay.io/a/b" + digest, want: "build metadata"},
		"Tag":       {reason: "a tag can be moved", version: "v1.2.3", image: "quay.io/a/b:v1.2.3", want: "a tag can be moved"},
		"TagDigest": {reason: "mirrors are by digest", version: "v1.2.3", image: "quay.io/a/b:v1.2.3" + digest, want: "a tag can be moved"},
		"ShortDigest": {
			reason: "a digest is complete", version: "v1.2.3", image: "quay.io/a/b@sha256:aa",
			want: "is not REGISTRY/REPOSITORY@sha256:DIGEST",
		},
		"ShortName": {
			reason: "the registry is that of the configuration of a node", version: "v1.2.3", image: "b" + digest,
			want: "is not REGISTRY/REPOSITORY@sha256:DIGEST",
		},
		"BundleTag": {
			reason: "so is that of the bundle", version: "v1.2.3", image: "quay.io/a/b" + digest, bundleImage: "quay.io/a/c:v1",
			want: "for BUNDLE",
		},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := bundle.Generate(bundle.Options{
				Manifests: filepath.Join(root, "manifests"), Version: tc.version, Image: tc.image,
				BundleImage: tc.bundleImage,
			})
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
				}
				return
			}
			if got := decode[operatorsv1alpha1.ClusterServiceVersion](t, made.Files[csv]); got.Spec.Version.String() != tc.want ||
				got.Name != "update-preflight.v"+tc.want {
				t.Errorf("%s: %s has the version %s, want %s", tc.reason, got.Name, got.Spec.Version, tc.want)
			}
		})
	}
}

// Files of an earlier bundle do not stay, and a directory with other files is left alone.
func TestWrite(t *testing.T) {
	directory := written(t)
	if err := os.WriteFile(filepath.Join(directory, "manifests", "stale.yaml"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	made := generate(t, options())
	if err := made.Write(directory); err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(directory, path)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(relative)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(made.Files)), slices.Sorted(maps.Keys(found))); diff != "" || !cmp.Equal(made.Files, found) {
		t.Errorf("files (-bundle, +directory):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		reason string
		files  []string
	}{
		"Other":      {"a directory of something else", []string{"thesis.txt"}},
		"Repository": {"one of an operator, which has a bundle.Dockerfile, too", []string{"bundle.Dockerfile", "thesis.txt"}},
		"Alike":      {"one with a file of the same name", []string{"install.yaml"}},
	} {
		other := t.TempDir()
		for _, file := range tc.files {
			if err := os.WriteFile(filepath.Join(other, file), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := made.Write(other); err == nil || !strings.Contains(err.Error(), "name another one") {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
		for _, file := range tc.files {
			if text, err := os.ReadFile(filepath.Join(other, file)); err != nil || string(text) != "x" {
				t.Errorf("%s: %s: %s is %q, %v", name, tc.reason, file, text, err)
			}
		}
	}
}
