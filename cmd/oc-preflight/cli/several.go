package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/words"
)

// Kubeconfig is the kubeconfig of the flags with all its contexts. The files that they name are not
// read.
func Kubeconfig(c *Client) (clientcmdapi.Config, error) {
	loader := c.flags.config()
	for _, path := range loader.ConfigAccess().GetLoadingPrecedence() {
		if err := checkFile(path); err != nil {
			return clientcmdapi.Config{}, fmt.Errorf("the kubeconfig cannot be used: %w", err)
		}
	}
	return loader.RawConfig()
}

// LoadContext is the configuration of a context of the kubeconfig of the flags, with what [Several]
// allows.
func LoadContext(c *Client, config clientcmdapi.Config, context string) (*rest.Config, error) {
	return load(config, context, c.forSeveral(), c.flags.config().ConfigAccess())
}

// LoadFile is the configuration of the current context of a kubeconfig file, or of its only one, with
// what [Several] allows, and with the limits of the connection of the flags.
func LoadFile(c *Client, path string) (*rest.Config, error) { return loadFile(path, c.forSeveral()) }

func loadFile(path string, overrides *clientcmd.ConfigOverrides) (*rest.Config, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, err
	}
	current := raw.CurrentContext
	if current == "" && len(raw.Contexts) == 1 {
		current = slices.Collect(maps.Keys(raw.Contexts))[0]
	}
	if current == "" {
		return nil, fmt.Errorf("the kubeconfig has %d contexts, and none of them is the current one", len(raw.Contexts))
	}
	return load(raw, current, overrides, loader.ConfigAccess())
}

// load is the configuration of a context. client-go reports a cluster that does not exist as a
// configuration without one, and uses no credentials for a user that does not exist.
func load(config clientcmdapi.Config, context string, overrides *clientcmd.ConfigOverrides,
	access clientcmd.ConfigAccess,
) (*rest.Config, error) {
	chosen, ok := config.Contexts[context]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig has no context %q", context)
	}
	of, named := clientcmdapi.Config{}, config.Clusters[chosen.Cluster]
	switch {
	case chosen.Cluster == "":
		return nil, fmt.Errorf("the context %q names no cluster", context)
	case named == nil || named.Server == "":
		return nil, fmt.Errorf("the context %q names the cluster %q, for which the kubeconfig has no server", context, chosen.Cluster)
	}
	of.Clusters = map[string]*clientcmdapi.Cluster{chosen.Cluster: named}
	if chosen.AuthInfo != "" {
		user := config.AuthInfos[chosen.AuthInfo]
		if user == nil {
			return nil, fmt.Errorf("the context %q names the user %q, which the kubeconfig does not have", context, chosen.AuthInfo)
		}
		of.AuthInfos = map[string]*clientcmdapi.AuthInfo{chosen.AuthInfo: user}
	}
	if err := errors.Join(checkReferenced(of), checkOverrides(overrides)); err != nil {
		return nil, err
	}
	return clientcmd.NewNonInteractiveClientConfig(config, context, overrides, access).ClientConfig()
}

// forSeveral are the flags that apply to each of several clusters.
func (c *Client) forSeveral() *clientcmd.ConfigOverrides {
	c.flags.config() // reads --as-user-extra
	given := c.flags.overrides
	overrides := &clientcmd.ConfigOverrides{Timeout: given.Timeout}
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateUID = given.AuthInfo.Impersonate, given.AuthInfo.ImpersonateUID
	overrides.AuthInfo.ImpersonateGroups, overrides.AuthInfo.ImpersonateUserExtra = given.AuthInfo.ImpersonateGroups,
		given.AuthInfo.ImpersonateUserExtra
	overrides.ClusterInfo.DisableCompression = given.ClusterInfo.DisableCompression
	return overrides
}

// Several is an error if a flag of the connection was given that is for one cluster: the user whom the
// impersonation and the time limit of requests apply to every cluster. allowed are further flags.
func Several(flags *pflag.FlagSet, allowed ...string) error {
	allowed = append(allowed, "as", "as-group", "as-uid", "as-user-extra", clientcmd.FlagTimeout, clientcmd.FlagDisableCompression)
	var wrong []string
	connections := pflag.NewFlagSet("", pflag.ContinueOnError)
	newConnection(connections)
	connections.VisitAll(func(flag *pflag.Flag) {
		if given := flags.Lookup(flag.Name); given != nil && given.Changed && !slices.Contains(allowed, flag.Name) {
			wrong = append(wrong, "--"+flag.Name)
		}
	})
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s: the flag is for one cluster, and each of these has its own in its kubeconfig; of the flags of the "+
		"connection, --as, --as-group, --as-uid, --as-user-extra and --request-timeout are for all of them", strings.Join(wrong, ", "))
}

// LeftOut states the files of an archive that could not be read so far, in one sentence; empty for none.
type LeftOut func() string

// OpenArchive makes the clients of one of several archives. What could not be read of it is known when the
// cluster was evaluated.
func OpenArchive(ctx context.Context, c *Client, path string) (*cluster.Cluster, LeftOut, error) {
	program.CollectGarbage(archiveGCPercent)
	opened, err := archive.Open(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	about := opened.About()
	c.Log.InfoContext(ctx, "the archive is a cluster", "kind", about.Kind, "root", about.Root, "cluster", about.ClusterID, "time", about.Time,
		"leftOut", len(about.LeftOut))
	reached, err := cluster.ConnectAt(opened.Config(), userAgent(), opened.Now())
	return reached, func() string { return leftOutOf(opened.About()) }, err
}

// leftOutOf states how many files were left out, and the first one.
func leftOutOf(about inventory.About) string {
	const most = 512 // bytes
	if len(about.LeftOut) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of the archive not read, such as %s", words.Count(len(about.LeftOut)+about.LeftOutMore, "file"),
		words.Line(about.LeftOut[0], most))
}

// connection has the flags that name the cluster and the user, as kubectl has them. They are
// bound here, since k8s.io/cli-runtime, which has them ready, links all of kustomize.
type connection struct {
	overrides *clientcmd.ConfigOverrides
	// userExtra has texts of the form KEY=VALUE.
	userExtra []string
	deferred  clientcmd.ClientConfig
}

// newConnection adds the flags that select a kubeconfig, a context and a user.
func newConnection(flags *pflag.FlagSet) *connection {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	overrides := &clientcmd.ConfigOverrides{ClusterDefaults: clientcmd.ClusterDefaults}
	c := &connection{overrides: overrides, deferred: clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)}
	flags.StringVar(&rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use for CLI requests.")
	clientcmd.BindOverrideFlags(overrides, flags, overrideFlags())
	flags.StringArrayVar(&c.userExtra, "as-user-extra", nil,
		"User extras to impersonate for the operation, this flag can be repeated to specify multiple values for the same key.")
	option.Declare(flags, option.Option{Effect: option.OnClusters}, clientcmd.RecommendedConfigPathFlag, clientcmd.FlagContext,
		clientcmd.FlagClusterName, clientcmd.FlagAuthInfoName,
		clientcmd.FlagAPIServer, clientcmd.FlagTLSServerName, clientcmd.FlagInsecure, clientcmd.FlagCAFile, clientcmd.FlagProxyURL,
		clientcmd.FlagCertFile, clientcmd.FlagKeyFile, clientcmd.FlagBearerToken,
		clientcmd.FlagImpersonate, clientcmd.FlagImpersonateGroup, clientcmd.FlagImpersonateUID, "as-user-extra")
	option.Declare(flags, option.Option{Effect: option.OnAnswer}, clientcmd.FlagTimeout)
	option.Declare(flags, option.Option{Effect: option.OnDisplay}, clientcmd.FlagDisableCompression)
	return c
}

// config is the configuration that the flags select; the kubeconfig is read once. As in
// kubectl, a text of another form than KEY=VALUE is ignored.
func (c *connection) config() clientcmd.ClientConfig {
	extra := map[string][]string{}
	for _, text := range c.userExtra {
		if key, value, ok := strings.Cut(text, "="); ok {
			extra[key] = append(extra[key], value)
		}
	}
	if len(extra) > 0 {
		c.overrides.AuthInfo.ImpersonateUserExtra = extra
	}
	return c.deferred
}

// subject names the API server and the context, without credentials; empty where neither is configured.
func (c *connection) subject() string {
	var named []string
	if config, err := c.config().ClientConfig(); err == nil {
		named = append(named, withoutUserInfo(config.Host))
	}
	context := c.overrides.CurrentContext
	if raw, err := c.config().RawConfig(); context == "" && err == nil {
		context = raw.CurrentContext
	}
	if context != "" {
		named = append(named, "context "+context)
	}
	return strings.Join(named, ", ")
}

// withoutUserInfo is the address of an API server without a password. client-go accepts one without a scheme.
func withoutUserInfo(host string) string {
	if address, err := url.Parse(host); err == nil {
		return address.Redacted()
	}
	return host[strings.LastIndex(host, "@")+1:]
}

// overrideFlags are the flags of kubectl without those for a password, which no API server
// accepts, and for a namespace: every command is about the whole cluster.
func overrideFlags() clientcmd.ConfigOverrideFlags {
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.AuthOverrideFlags.Username, flags.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	flags.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{}
	flags.AuthOverrideFlags.Impersonate.Description += ". User could be a regular user or a service account in a namespace."
	flags.ClusterOverrideFlags.APIServer.ShortName = "s"
	flags.ClusterOverrideFlags.ProxyURL.Description = "Proxy URL to use for requests to the API server"
	flags.ClusterOverrideFlags.TLSServerName.Description = "Server name to use for server certificate validation. If it is not " +
		"provided, the hostname used to contact the server is used"
	flags.AuthOverrideFlags.ImpersonateUID.Description += "."
	return flags
}
