// Package checktest answers: what does a check say about a real cluster, run
// as the process that it will be, with no more rights than its manifests give?
package checktest

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/test/cluster"
)

// patience is how long the API server may take until it acts by what it was
// told.
const patience = 20 * time.Second

// Stage is a cluster with the manifests of a check applied, and the check's
// program.
type Stage struct {
	admin   *rest.Config
	kube    kubernetes.Interface
	objects dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	program string
	roles   []*unstructured.Unstructured
	// asCheck and asStranger are kubeconfigs: of the ServiceAccount of the
	// manifests, and of one that may do nothing.
	asCheck, asStranger string
}

// New builds the program in the working directory, which is that of the test's
// package, and applies its manifests but for the Job to c, in namespaces that
// it makes, after the additional files. The ServiceAccount of that name in
// namespace is whom the check is run as.
func New(t *testing.T, c *cluster.Cluster, namespace, serviceAccount string, files ...string) *Stage {
	t.Helper()
	s := &Stage{admin: rest.CopyConfig(c.Config), program: filepath.Join(t.TempDir(), "preflight")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.program, ".") //nolint:gosec // No input of others.
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the check: %v\n%s", err, output)
	}

	var err error
	s.admin.WarningHandler = rest.NoWarnings{} // about keys that are none
	if s.kube, err = kubernetes.NewForConfig(s.admin); err != nil {
		t.Fatal(err)
	}
	if s.objects, err = dynamic.NewForConfig(s.admin); err != nil {
		t.Fatal(err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.kube.Discovery()))
	for _, file := range files {
		s.ApplyFile(t, file)
	}
	s.applyManifests(t, "system:serviceaccount:"+namespace+":"+serviceAccount)
	s.Apply(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: stranger, namespace: `+namespace+`}}`)
	s.asCheck = s.kubeconfig(t, namespace, serviceAccount)
	s.asStranger = s.kubeconfig(t, namespace, "stranger")
	return s
}

// kubeconfig writes one with a token of the ServiceAccount.
func (s *Stage) kubeconfig(t *testing.T, namespace, serviceAccount string) string {
	t.Helper()
	token, err := s.kube.CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), serviceAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"local": {Server: s.admin.Host, CertificateAuthority: s.admin.CAFile, CertificateAuthorityData: s.admin.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"check": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"local": {Cluster: "local", AuthInfo: "check"}},
		CurrentContext: "local",
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
