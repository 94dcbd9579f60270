package cli

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/cluster"
)

// Kubeconfig is the kubeconfig of the flags with all its contexts.
func Kubeconfig(c *Client) (clientcmdapi.Config, error) {
	if err := c.checkFiles(); err != nil {
		return clientcmdapi.Config{}, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	return c.flags.config().RawConfig()
}

// LoadContext is the configuration of a context of the kubeconfig of the flags. The user whom
// the flags impersonate and the time limit of requests are those of every context; what else
// the flags set is for one cluster, and left out.
func LoadContext(c *Client, config clientcmdapi.Config, context string) (*rest.Config, error) {
	given := c.flags.overrides
	overrides := &clientcmd.ConfigOverrides{Timeout: given.Timeout}
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateUID = given.AuthInfo.Impersonate, given.AuthInfo.ImpersonateUID
	overrides.AuthInfo.ImpersonateGroups, overrides.AuthInfo.ImpersonateUserExtra = given.AuthInfo.ImpersonateGroups, given.AuthInfo.ImpersonateUserExtra
	return clientcmd.NewNonInteractiveClientConfig(config, context, overrides, c.flags.config().ConfigAccess()).ClientConfig()
}

// LoadFile is the configuration of the current context of a kubeconfig file, or of its only one, with
// the limits of that of the flags.
func LoadFile(path string) (*rest.Config, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, err
	}
	if err := checkReferenced(raw); err != nil {
		return nil, err
	}
	overrides := &clientcmd.ConfigOverrides{}
	if raw.CurrentContext == "" && len(raw.Contexts) == 1 {
		overrides.CurrentContext = slices.Collect(maps.Keys(raw.Contexts))[0]
	}
	return clientcmd.NewNonInteractiveClientConfig(raw, overrides.CurrentContext, overrides, loader.ConfigAccess()).ClientConfig()
}

// OpenArchive makes the clients of one of several archives. Files of it that cannot be read are
// in the log alone.
func OpenArchive(ctx context.Context, c *Client, path string) (*cluster.Cluster, error) {
	debug.SetGCPercent(archiveGCPercent)
	opened, err := archive.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	about := opened.About()
	c.Log.InfoContext(ctx, "the archive is a cluster", "kind", about.Kind, "root", about.Root, "cluster", about.ClusterID, "time", about.Time, "leftOut", len(about.LeftOut))
	return cluster.ConnectAt(opened.Config(), userAgent(), about.Time)
}
