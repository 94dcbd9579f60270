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

// versions are those of the definition, the last of which is the one to store.
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

// define creates the definition for the time of the test, and waits until it is
// served.
func define(t *testing.T, names ...string) {
	t.Helper()
	crds := clients(t).ApiextensionsV1().CustomResourceDefinitions()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, for a test"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "snapshot.storage.k8s.io", Scope: apiextensionsv1.NamespaceScoped, Versions: versions(names...),
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "volumesnapshots", Singular: "volumesnapshot", Kind: "VolumeSnapshot", ListKind: "VolumeSnapshotList"},
		},
	}
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := crds.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		await(context.Background(), t, "the definition to be gone", func(ctx context.Context) error {
			if _, err := crds.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is still there (%w)", err)
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

func await(ctx context.Context, t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v: %v", what, err, last)
	}
}

// redefine is what the cluster's operator does in the update, with the API
// server's answer.
func redefine(t *testing.T, names ...string) error {
	t.Helper()
	crds := clients(t).ApiextensionsV1().CustomResourceDefinitions()
	var refusal error
	await(t.Context(), t, "a try without a conflict", func(ctx context.Context) error {
		crd, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		crd.Spec.Versions = versions(names...)
		if _, refusal = crds.Update(ctx, crd, metav1.UpdateOptions{}); apierrors.IsConflict(refusal) {
			return refusal
		}
		return nil
	})
	return refusal
}

func snapshot(object, version string) string {
	return fmt.Sprintf("---\n{apiVersion: snapshot.storage.k8s.io/%s, kind: VolumeSnapshot, metadata: {name: %s, namespace: shop, labels: {app: shop}}}\n", version, object)
}

// targetCRDs is the directory that the Job would mount: the ConfigMap of the
// manifests as files.
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

// follow does what a remediation says, with kubectl in the place of oc.
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

func dropped(outcome preflight.Outcome, remedy string, objects []string, says ...string) checktest.Want {
	return checktest.Want{Outcome: outcome, Reason: "VersionDropped", Says: says, Remedies: []string{remedy}, Objects: objects}
}

func unknown(says ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Says: says}
}

func TestResourceVersions(t *testing.T) {
	stage := checktest.New(t, local, "openshift-cluster-storage-operator", "snapshot-preflight")
	target := targetCRDs(t)
	for name, tc := range map[string]struct {
		reason string
		// versions are those that the cluster had first and has now; the last
		// one of each is stored.
		first, now []string
		state      string
		target     string
		ask        func(*testing.T, ...string) checktest.Answer
		want       checktest.Want
	}{
		"NoDefinition": {
			reason: "what the cluster does not have it cannot lose",
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"OfToday": {
			reason: "v1 stays",
			first:  []string{"v1"},
			state:  snapshot("daily", "v1"),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"ServedOnly": {
			reason: "a version that was never stored, and that nobody wrote, may go",
			first:  []string{"v1beta1", "v1"},
			state:  snapshot("daily", "v1"),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"StillStored": {
			reason: "the incident: v1 has been stored for long, but the list still has v1beta1",
			first:  []string{"v1beta1"}, now: []string{"v1beta1", "v1"},
			want: dropped(preflight.Fail, `oc patch crd volumesnapshots.snapshot.storage.k8s.io --subresource=status --type=merge -p '{"status":{"storedVersions":["v1"]}}'`,
				[]string{"volumesnapshots.snapshot.storage.k8s.io"}, "may be stored as v1beta1, but the target has only [v1]"),
		},
		"StorageVersion": {
			reason: "a cluster that stores what the target drops has skipped a release",
			first:  []string{"v1", "v1beta1"},
			want: dropped(preflight.Fail, "Update to a release in between first, which stores volumesnapshots.snapshot.storage.k8s.io as one of [v1].",
				[]string{"volumesnapshots.snapshot.storage.k8s.io"}, "may be stored as v1beta1"),
		},
		"Written": {
			reason: "a client that writes v1beta1 works today, and will not",
			first:  []string{"v1beta1", "v1"},
			state:  snapshot("daily", "v1beta1") + snapshot("weekly", "v1beta1"),
			want: dropped(preflight.Warn, "use version [v1], or it will get errors.", nil,
				" wrote daily as snapshot.storage.k8s.io/v1beta1, which the target does not serve"),
		},
		"OtherDefinition": {
			reason: "the directory says which definitions to look at, and RBAC which it may",
			target: directory(t, map[string]string{"others.example.k8s.io": "v1"}),
			want:   unknown(`customresourcedefinitions.apiextensions.k8s.io "others.example.k8s.io" is forbidden`),
		},
		"NoTarget": {
			reason: "without the target's definitions there is nothing to compare with",
			target: directory(t, map[string]string{"..data": "v1"}),
			want:   unknown("no CustomResourceDefinition in ", "which TARGET_CRDS names"),
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
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
			stage.Apply(t, tc.state)
			ask, dir := stage.Ask, target
			if tc.ask != nil {
				ask = tc.ask
			}
			if tc.target != "" {
				dir = tc.target
			}
			ask(t, "TARGET_CRDS="+dir).Expect(t, tc.reason, "ResourceVersions", tc.want)
		})
	}
}

// TestRemedy goes through the whole incident: the API server refuses what the
// target would do, until somebody does what the finding says.
func TestRemedy(t *testing.T) {
	stage := checktest.New(t, local, "openshift-cluster-storage-operator", "snapshot-preflight")
	environment := "TARGET_CRDS=" + targetCRDs(t)
	define(t, "v1beta1", "v1")
	stage.Apply(t, snapshot("daily", "v1"))
	for _, step := range [][]string{{"v1", "v1beta1"}, {"v1beta1", "v1"}} {
		if err := redefine(t, step...); err != nil {
			t.Fatal(err)
		}
	}
	if err := redefine(t, "v1"); err == nil || !strings.Contains(err.Error(), "status.storedVersions") {
		t.Fatalf("the API server is to refuse the target's definition, or there is no incident; got %v", err)
	}
	answer := stage.Ask(t, environment)
	answer.Expect(t, "that has to be known before", "ResourceVersions",
		dropped(preflight.Fail, "oc get volumesnapshots.snapshot.storage.k8s.io -A -o json | oc replace -f -", []string{name}))

	follow(t, answer.Findings["ResourceVersions"].Remediation)
	stage.Ask(t, environment).Expect(t, "whoever does what it says has the update", "ResourceVersions",
		checktest.Want{Outcome: preflight.Pass, Reason: "Passed"})
	if err := redefine(t, "v1"); err != nil {
		t.Errorf("and the API server is to take the target's definition then: %v", err)
	}
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-cluster-storage-operator", "snapshot-preflight").ExpectJob(t)
}
