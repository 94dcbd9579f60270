// Package scale_test answers: what does a preflight of thousands of checks cost, and
// which component takes the time? The control plane is real, the nodes are simulated
// (cluster.KWOK): no container runs.
package scale_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/release"
)

const (
	from = "5.1.3"
	to   = "5.2.0"
	// namespace is that of the checks; source is their image in the manifests.
	namespace = "openshift-scale"
	source    = "quay.io/openshift/origin-scale"
	// nodes is enough to run all pods of the largest run at a time.
	nodes = 24
	// The rate of OpenShift's controllers (cluster-kube-controller-manager-operator
	// bindata/assets/config/defaultconfig.yaml).
	openshiftRate, openshiftBurst = 150, 300
	// admin is the user of preflight and kubectl: it has all permissions,
	// and the API server counts and queues its requests like all others.
	admin = "scale-admin"
)

// root is the root of the repository.
const root = "../../.."

// program is the path of oc-preflight, compiled at the first call.
var program = sync.OnceValues(func() (string, error) { return build.Compile(context.Background(), "cmd/oc-preflight") })

// environment is a cluster with simulated nodes, and a registry.
type environment struct {
	*cluster.Cluster
	tb         testing.TB
	client     kubernetes.Interface
	registry   string
	monitoring string
	image      string
}

// start starts an environment until the end of the test.
func start(tb testing.TB, options ...cluster.Option) *environment {
	tb.Helper()
	if _, err := program(); err != nil { // before time is measured
		tb.Fatal(err)
	}
	c, err := cluster.Start(tb.Context(), filepath.Join(tb.TempDir(), "cluster"), append(options, cluster.KWOK(nodes))...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Stop(tb.Context()); err != nil {
			tb.Error(err)
		}
	})
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	tb.Cleanup(server.Close)
	e := &environment{
		Cluster: c, tb: tb, client: kubernetes.NewForConfigOrDie(c.Config), registry: strings.TrimPrefix(server.URL, "http://"),
		monitoring: prometheus.Constant(tb, http.StatusOK, `{"status":"success","data":{"alerts":[]}}`).URL,
	}
	if e.image, err = release.BuildImage(tb.Context(), e.registry, "scale", release.Image{}); err != nil {
		tb.Fatal(err)
	}
	e.grantAdmin()
	e.countRequests()
	e.simulateResults()
	return e
}

// grantAdmin binds the user admin to cluster-admin.
func (e *environment) grantAdmin() {
	e.tb.Helper()
	_, err := e.client.RbacV1().ClusterRoleBindings().Create(e.tb.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: admin},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: admin}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	if err != nil {
		e.tb.Fatal(err)
	}
}

// checks describes the Jobs of a release.
type checks struct {
	count int
	// duration is that of each Job.
	duration string
	// script is true for checks without the SDK, which have only an exit code.
	script bool
}

// job returns the Job with a number, as in the manifest of an operator.
func (c checks) job(i int) *batchv1.Job {
	annotations := map[string]string{"openshift.io/preflight-check": "true"}
	variables := []corev1.EnvVar{{Name: variableDuration, Value: c.duration}}
	if !c.script {
		annotations["preflight.openshift.io/result"] = "framed"
		variables = append(variables, corev1.EnvVar{Name: variableCheck, Value: fmt.Sprintf("Check%05d", i)})
	}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("check-%05d", i), Namespace: namespace, Annotations: annotations},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name: "preflight", Image: source + ":latest", Command: []string{"/bin/preflight"}, Env: variables,
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
					}},
				},
			},
		},
	}
}

// publish pushes and signs a release with these checks, and makes the cluster offer it.
func (e *environment) publish(c checks) {
	e.tb.Helper()
	manifests := map[string]string{}
	for i := range c.count {
		text, err := yaml.Marshal(c.job(i))
		if err != nil {
			e.tb.Fatal(err)
		}
		manifests[fmt.Sprintf("0000_50_scale_11_check-%05d.yaml", i)] = string(text)
	}
	pullSpec, err := release.Push(e.tb.Context(), e.registry, release.Release{
		Version: to, Previous: []string{from},
		Components: []release.Component{{Name: "scale", Image: e.image, Source: source, Manifests: manifests}},
	})
	if err != nil {
		e.tb.Fatal(err)
	}
	signer, err := release.NewSigner("scale release key")
	if err != nil {
		e.tb.Fatal(err)
	}
	signature, err := signer.Sign(pullSpec, "quay.io/openshift-release-dev/ocp-release:"+to+"-x86_64")
	if err != nil {
		e.tb.Fatal(err)
	}
	key, err := signer.PublicKey()
	if err != nil {
		e.tb.Fatal(err)
	}
	signatures := release.Store{}
	signatures.Add(pullSpec, signature)
	err = openshift.Apply(e.tb.Context(), e.Config, openshift.State{
		Version: from, Image: "registry.example.com/release@sha256:" + strings.Repeat("1", 64),
		Available: map[string]string{to: pullSpec}, Keys: map[string][]byte{"verifier-public-key-scale": key},
		Stores: map[string]string{"store-local": "file://" + e.tb.TempDir()}, Signatures: signatures,
		Gates: map[string]string{}, Acks: map[string]string{}, Namespaces: []string{namespace},
	})
	if err != nil {
		e.tb.Fatal(err)
	}
}
