// Package checktest answers: what does the program of a check report about a real
// API server, with only the permissions that its manifests grant?
package checktest

import (
	"os"
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

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
)

// maxWait is the maximum time until the API server serves a new resource, enforces a
// new role or deletes an object.
const maxWait = 20 * time.Second

// Environment is a cluster to which the manifests of a check are applied, and the
// program of the check.
type Environment struct {
	admin   *rest.Config
	kube    kubernetes.Interface
	objects dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	program string
	roles   []*unstructured.Unstructured
	// serviceAccount and unprivileged are kubeconfigs: of the ServiceAccount in the
	// manifests and of one without permissions.
	serviceAccount, unprivileged string
}

// New compiles the program in the working directory, which is the directory of the
// test's package. It applies the additional files, then the manifests of the check
// except the Job, and creates their namespaces. The program runs with the
// permissions of the ServiceAccount in namespace.
func New(t *testing.T, c *cluster.Cluster, namespace, serviceAccount string, files ...string) *Environment {
	t.Helper()
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	e := &Environment{admin: rest.CopyConfig(c.Config)}
	if e.program, err = build.Compile(t.Context(), "examples/"+filepath.Base(directory)); err != nil {
		t.Fatal(err)
	}
	e.admin.WarningHandler = rest.NoWarnings{} // The keys in the Secrets of tests are invalid.
	if e.kube, err = kubernetes.NewForConfig(e.admin); err != nil {
		t.Fatal(err)
	}
	if e.objects, err = dynamic.NewForConfig(e.admin); err != nil {
		t.Fatal(err)
	}
	e.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(e.kube.Discovery()))
	for _, file := range files {
		e.ApplyFile(t, file)
	}
	e.applyManifests(t, "system:serviceaccount:"+namespace+":"+serviceAccount)
	e.Apply(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: unprivileged, namespace: `+namespace+`}}`)
	e.serviceAccount = e.kubeconfig(t, namespace, serviceAccount)
	e.unprivileged = e.kubeconfig(t, namespace, "unprivileged")
	return e
}

// kubeconfig writes a kubeconfig with a token of the ServiceAccount.
func (e *Environment) kubeconfig(t *testing.T, namespace, serviceAccount string) string {
	t.Helper()
	token, err := e.kube.CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), serviceAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"local": {
			Server: e.admin.Host, CertificateAuthority: e.admin.CAFile,
			CertificateAuthorityData: e.admin.CAData,
		}},
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
