package cli

import (
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
)

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
	flags.StringArrayVar(&c.userExtra, "as-user-extra", nil, "User extras to impersonate for the operation, this flag can be repeated to specify multiple values for the same key.")
	option.Declare(flags, option.Option{Effect: option.OnClusters}, clientcmd.RecommendedConfigPathFlag, clientcmd.FlagContext, clientcmd.FlagClusterName, clientcmd.FlagAuthInfoName,
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
	flags.ClusterOverrideFlags.TLSServerName.Description = "Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used"
	flags.AuthOverrideFlags.ImpersonateUID.Description += "."
	return flags
}
