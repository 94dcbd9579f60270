package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

const name = "volumesnapshots.snapshot.storage.k8s.io"

// versions returns the versions of the definition. The last one is the storage version.
func versions(names ...string) []apiextensionsv1.CustomResourceDefinitionVersion {
	var all []apiextensionsv1.CustomResourceDefinitionVersion
	for i, version := range names {
		all = append(all, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == len(names)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		})
	}
	return all
}

func clients(t *testing.T) apiextensions.Interface {
	t.Helper()
	client, err := apiextensions.NewForConfig(local.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// define creates the definition for the duration of the test and waits until it is
// served.
func define(t *testing.T, names ...string) {
	t.Helper()
	crds := clients(t).ApiextensionsV1().CustomResourceDefinitions()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "snapshot.storage.k8s.io", Scope: apiextensionsv1.NamespaceScoped, Versions: versions(names...),
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "volumesnapshots", Singular: "volumesnapshot", Kind: "VolumeSnapshot",
				ListKind: "VolumeSnapshotList",
			},
		},
	}
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := crds.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		await(context.Background(), t, "the definition to be deleted", func(ctx context.Context) error {
			if _, err := crds.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it still exists (%w)", err)
			}
			return nil
		})
	})
	for _, version := range names {
		awaitServed(t, version)
	}
}

func awaitServed(t *testing.T, version string) {
	t.Helper()
	objects, err := dynamic.NewForConfig(local.Config)
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: version, Resource: "volumesnapshots"}
	await(t.Context(), t, version+" to be served", func(ctx context.Context) error {
		_, err := objects.Resource(resource).List(ctx, metav1.ListOptions{})
		return err
	})
}

func await(ctx context.Context, t *testing.T, what string, attempt func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		last = attempt(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v: %v", what, err, last)
	}
}

// redefine changes the versions of the definition, as the operator does in the update. It
// returns the error of the API server.
func redefine(t *testing.T, names ...string) error {
	t.Helper()
	crds := clients(t).ApiextensionsV1().CustomResourceDefinitions()
	var rejected error
	await(t.Context(), t, "an update without a conflict", func(ctx context.Context) error {
		crd, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		crd.Spec.Versions = versions(names...)
		if _, rejected = crds.Update(ctx, crd, metav1.UpdateOptions{}); apierrors.IsConflict(rejected) {
			return rejected
		}
		return nil
	})
	return rejected
}

func snapshot(object, version string) string {
	return fmt.Sprintf("---\n{apiVersion: snapshot.storage.k8s.io/%s, kind: VolumeSnapshot, metadata: {name: %s, namespace: shop, "+
		"labels: {app: shop}}}\n", version, object)
}

// targetCRDs returns the directory that the Job mounts: the ConfigMap of the manifests as
// files.
func targetCRDs(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("manifests/*-crds.yaml")
	if err != nil || len(files) != 1 {
		t.Fatalf("want one manifest of the ConfigMap, got %v (%v)", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content, &list); err != nil {
		t.Fatal(err)
	}
	return directory(t, list.Data)
}

func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// follow executes a remediation with kubectl instead of oc.
func follow(t *testing.T, remediation string) {
	t.Helper()
	kubectl, err := filepath.Abs("../../bin/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-euc", "oc() { "+kubectl+` "$@"; }`+"\n"+remediation)
	shell.Env = append(os.Environ(), "KUBECONFIG="+local.Kubeconfig)
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("the remediation does not work: %v\n%s\n%s", err, remediation, output)
	}
}

func dropped(outcome preflight.Outcome, remedy string, objects []string, messages ...string) checktest.Want {
	return checktest.Want{Outcome: outcome, Reason: "VersionDropped", Messages: messages, Remedies: []string{remedy}, Objects: objects}
}

func unknown(messages ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Messages: messages}
}

func TestResourceVersions(t *testing.T) {
	env := checktest.New(t, local, "openshift-cluster-storage-operator", "snapshot-preflight")
	target := targetCRDs(t)
	for name, tc := range map[string]struct {
		reason string
		// first and now are the versions that the cluster had and has; the last one of each
		// is the storage version.
		first, now []string
		state      string
		target     string
		run        func(*testing.T, ...string) checktest.Report
		want       checktest.Want
	}{
		"NoDefinition": {
			reason: "a definition that the cluster does not have is ignored",
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"Current": {
			reason: "the target has v1",
			first:  []string{"v1"},
			state:  snapshot("daily", "v1"),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"ServedOnly": {
			reason: "a version that was never stored or written may be dropped",
			first:  []string{"v1beta1", "v1"},
			state:  snapshot("daily", "v1"),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"StillStored": {
			reason: "the incident: v1 is the storage version, but status.storedVersions still contains v1beta1",
			first:  []string{"v1beta1"}, now: []string{"v1beta1", "v1"},
			want: dropped(preflight.Fail,
				`oc patch crd volumesnapshots.snapshot.storage.k8s.io --subresource=status --type=merge -p '{"status":{"storedVersions":["v1"]}}'`,
				[]string{"volumesnapshots.snapshot.storage.k8s.io"}, "may be stored as v1beta1, but the target only has [v1]"),
		},
		"StorageVersion": {
			reason: "the storage version is dropped: the cluster skipped a release",
			first:  []string{"v1", "v1beta1"},
			want: dropped(preflight.Fail, "Update to an intermediate release first that stores volumesnapshots.snapshot.storage.k8s.io as "+
				"one of [v1].",
				[]string{"volumesnapshots.snapshot.storage.k8s.io"}, "may be stored as v1beta1"),
		},
		"Written": {
			reason: "a client that writes v1beta1 will fail after the update",
			first:  []string{"v1beta1", "v1"},
			state:  snapshot("daily", "v1beta1") + snapshot("weekly", "v1beta1"),
			want: dropped(preflight.Warn, "to use version [v1] before the update.", nil,
				" wrote daily as snapshot.storage.k8s.io/v1beta1, which the target does not serve"),
		},
		"OtherDefinition": {
			reason: "a definition that the roles do not grant is forbidden",
			target: directory(t, map[string]string{"others.example.k8s.io": "v1"}),
			want:   unknown(`customresourcedefinitions.apiextensions.k8s.io "others.example.k8s.io" is forbidden`),
		},
		"NoTarget": {
			reason: "without the definitions of the target the check is inconclusive",
			target: directory(t, map[string]string{"..data": "v1"}),
			want:   unknown("no CustomResourceDefinition in ", "the directory in TARGET_CRDS"),
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want:   unknown("cannot compare the definitions: customresourcedefinitions.apiextensions.k8s.io ", "is forbidden"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if len(tc.first) > 0 {
				define(t, tc.first...)
			}
			if len(tc.now) > 0 {
				if err := redefine(t, tc.now...); err != nil {
					t.Fatal(err)
				}
			}
			env.Apply(t, tc.state)
			run, dir := env.Run, target
			if tc.run != nil {
				run = tc.run
			}
			if tc.target != "" {
				dir = tc.target
			}
			run(t, "TARGET_CRDS="+dir).Expect(t, tc.reason, "ResourceVersions", tc.want)
		})
	}
}

// TestRemedy reproduces the incident: the API server rejects the definition of the target
// until the remediation is executed.
func TestRemedy(t *testing.T) {
	env := checktest.New(t, local, "openshift-cluster-storage-operator", "snapshot-preflight")
	environment := "TARGET_CRDS=" + targetCRDs(t)
	define(t, "v1beta1", "v1")
	env.Apply(t, snapshot("daily", "v1"))
	for _, step := range [][]string{{"v1", "v1beta1"}, {"v1beta1", "v1"}} {
		if err := redefine(t, step...); err != nil {
			t.Fatal(err)
		}
	}
	if err := redefine(t, "v1"); err == nil || !strings.Contains(err.Error(), "status.storedVersions") {
		t.Fatalf("the incident is not reproduced: want an error of the API server for the definition of the target, got %v", err)
	}
	report := env.Run(t, environment)
	report.Expect(t, "the check reports the incident before the update", "ResourceVersions",
		dropped(preflight.Fail, "oc get volumesnapshots.snapshot.storage.k8s.io -A -o json | oc replace -f -", []string{name}))

	env.ExpectOutput(t, environment)
	var commands []string
	for _, action := range report.Findings["ResourceVersions"].Actions {
		commands = append(commands, action.Command)
	}
	follow(t, strings.Join(commands, "\n"))
	env.Run(t, environment).Expect(t, "the check passes after the remediation", "ResourceVersions",
		checktest.Want{Outcome: preflight.Pass, Reason: "Passed"})
	if err := redefine(t, "v1"); err != nil {
		t.Errorf("the API server rejects the definition of the target after the remediation: %v", err)
	}
}

func TestManifests(t *testing.T) {
	env := checktest.New(t, local, "openshift-cluster-storage-operator", "snapshot-preflight")
	env.ExpectJob(t)
	env.ExpectRoles(t)
}
