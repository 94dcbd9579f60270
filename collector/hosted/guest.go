package hosted

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
)

// kubeconfigKey is the key of the Secret with the kubeconfig of the guest.
const kubeconfigKey = "kubeconfig"

// maxKubeconfig bounds the kubeconfig, in bytes.
const maxKubeconfig = 1 << 20

// kubeconfig is the configuration by which the guest is reached: that of the Secret which the status of the
// HostedCluster names. It runs no program and reads no file that the kubeconfig names. The error states
// why there is none.
func (c *ControlPlane) kubeconfig(ctx context.Context) (*rest.Config, error) {
	named := c.Cluster.Status.KubeConfig
	if named == nil || named.Name == "" {
		return nil, fmt.Errorf("the status of HostedCluster %s names no kubeconfig of the guest", c.name())
	}
	secret, err := c.Management.Kubernetes.CoreV1().Secrets(c.Cluster.Namespace).Get(ctx, named.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("could not read Secret %s/%s with the kubeconfig of the guest: %w", c.Cluster.Namespace, named.Name, err)
	}
	config, err := ParseKubeconfig(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("key %s of Secret %s/%s: %w", kubeconfigKey, c.Cluster.Namespace, named.Name, err)
	}
	return config, nil
}

// ParseKubeconfig parses a kubeconfig from a Secret. It must have its credentials itself: one that runs a
// program or names a file is an error, since who may write the Secret would choose them.
func ParseKubeconfig(text []byte) (*rest.Config, error) {
	if len(text) == 0 || len(text) > maxKubeconfig {
		return nil, fmt.Errorf("it has %d bytes, want 1 to %d", len(text), maxKubeconfig)
	}
	parsed, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("it cannot be parsed: %w", err)
	}
	if err := selfContained(parsed); err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
}

// selfContained is the error for a kubeconfig that would run a program or send a local file.
func selfContained(parsed *clientcmdapi.Config) error {
	for name, user := range parsed.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil {
			return fmt.Errorf("the user %q is authenticated by a program, which is not run", name)
		}
		if user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" {
			return fmt.Errorf("the user %q has credentials in a file", name)
		}
	}
	for name, each := range parsed.Clusters {
		if each.CertificateAuthority != "" {
			return fmt.Errorf("the certificate authority of the cluster %q is in a file", name)
		}
	}
	return nil
}

// guestTimeout bounds the first request to a guest.
const guestTimeout = 30 * time.Second

// confirm is an *input.Error where the guest is another cluster; any other error means that it could not be
// read within 30 seconds.
func (c *ControlPlane) confirm(ctx context.Context, guest *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, guestTimeout)
	defer cancel()
	version, err := guest.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the guest of HostedCluster %s could not be read: %w", c.name(), err)
	}
	want := c.Cluster.Spec.ClusterID
	if want == "" {
		return errors.New("spec.clusterID of HostedCluster " + c.name() + " is empty, so it is unknown whether the kubeconfig is that of its guest")
	}
	if id := string(version.Spec.ClusterID); id != want {
		return input.Errorf("the kubeconfig of the guest is of another cluster: HostedCluster %s has the ID %s, and the guest %q", c.name(), want, id)
	}
	return nil
}
