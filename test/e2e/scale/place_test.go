// Package scale_test asks: what does a preflight of thousands of checks cost,
// and who takes the time? The control plane is real, the nodes are simulated
// (cluster.KWOK): no container runs, and everything else happens.
package scale_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/release"
)

const (
	from = "5.1.3"
	to   = "5.2.0"
	// namespace is where the checks run, source what manifests call their image.
	namespace = "openshift-scale"
	source    = "quay.io/openshift/origin-scale"
	// nodes have room for all pods of the largest run at one time.
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

// program is oc-preflight, built once, as a user would build it.
var program = sync.OnceValues(func() (string, error) {
	directory, err := os.MkdirTemp("", "preflight-scale-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(directory, "oc-preflight")
	build := exec.Command("go", "build", "-o", path, "./cmd/oc-preflight")
	build.Dir, build.Stderr = root, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return path, build.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path)) // nothing but the program is in it
	}
	os.Exit(code)
}

// place is a cluster with simulated nodes, and a registry.
type place struct {
	*cluster.Cluster
	tb         testing.TB
	client     kubernetes.Interface
	registry   string
	monitoring string
	image      string
}

// start makes a place for the time of one test.
func start(tb testing.TB, options ...cluster.Option) *place {
	tb.Helper()
	if _, err := program(); err != nil { // built off the clock
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
	p := &place{
		Cluster: c, tb: tb, client: kubernetes.NewForConfigOrDie(c.Config), registry: strings.TrimPrefix(server.URL, "http://"),
		monitoring: prometheus.Saying(tb, http.StatusOK, `{"status":"success","data":{"alerts":[]}}`).URL,
	}
	if p.image, err = release.BuildImage(tb.Context(), p.registry, "scale", release.Image{}); err != nil {
		tb.Fatal(err)
	}
	p.admit()
	p.countRequests()
	p.speakForPods()
	return p
}

// admit lets the administrator do everything.
func (p *place) admit() {
	p.tb.Helper()
	_, err := p.client.RbacV1().ClusterRoleBindings().Create(p.tb.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: admin},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: admin}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	if err != nil {
		p.tb.Fatal(err)
	}
}

// checks are how many Jobs of what kind a release has.
type checks struct {
	count int
	// takes is how long each of them runs.
	takes string
	// script is for checks that do not use the SDK: their exit code is all.
	script bool
}

// job is one of them, as an operator's author would write it.
func (c checks) job(i int) *batchv1.Job {
	annotations := map[string]string{"openshift.io/preflight-check": "true"}
	variables := []corev1.EnvVar{{Name: variableTakes, Value: c.takes}}
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

// publish signs a release with these checks, and has the cluster offer it.
func (p *place) publish(c checks) {
	p.tb.Helper()
	manifests := map[string]string{}
	for i := range c.count {
		text, err := yaml.Marshal(c.job(i))
		if err != nil {
			p.tb.Fatal(err)
		}
		manifests[fmt.Sprintf("0000_50_scale_11_check-%05d.yaml", i)] = string(text)
	}
	pullSpec, err := release.Push(p.tb.Context(), p.registry, release.Release{
		Version: to, Previous: []string{from},
		Components: []release.Component{{Name: "scale", Image: p.image, Source: source, Manifests: manifests}},
	})
	if err != nil {
		p.tb.Fatal(err)
	}
	signer, err := release.NewSigner("scale release key")
	if err != nil {
		p.tb.Fatal(err)
	}
	signature, err := signer.Sign(pullSpec, "quay.io/openshift-release-dev/ocp-release:"+to+"-x86_64")
	if err != nil {
		p.tb.Fatal(err)
	}
	key, err := signer.PublicKey()
	if err != nil {
		p.tb.Fatal(err)
	}
	signatures := release.Store{}
	signatures.Add(pullSpec, signature)
	err = openshift.Apply(p.tb.Context(), p.Config, openshift.State{
		Version: from, Image: "registry.example.com/release@sha256:" + strings.Repeat("1", 64),
		Available: map[string]string{to: pullSpec}, Keys: map[string][]byte{"verifier-public-key-scale": key},
		Stores: map[string]string{"store-local": "file://" + p.tb.TempDir()}, Signatures: signatures,
		Gates: map[string]string{}, Acks: map[string]string{}, Namespaces: []string{namespace},
	})
	if err != nil {
		p.tb.Fatal(err)
	}
}
