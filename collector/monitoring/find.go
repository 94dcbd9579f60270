package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/openshift/update-preflight/collector/access"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	namespace = "openshift-monitoring"
	querier   = "thanos-querier"
	// querierService is where pods reach the querier. Their proxies are no
	// proxies for it.
	querierService = "https://" + querier + "." + namespace + ".svc:9091"
	// podToken is where rest.InClusterConfig has its token from.
	podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // a path
)

// Finder finds a Prometheus: its URL is Host, and whoever asks it does so with
// the credentials and CA of this configuration, and with no others. It is
// called when something is first asked.
type Finder func(context.Context) (*rest.Config, error)

// Cluster is a cluster as its user reaches it.
type Cluster struct {
	// Config has the user's credentials, and the proxy to the cluster.
	Config *rest.Config
	// Dynamic reads Routes and ConfigMaps.
	Dynamic dynamic.Interface
}

// Find finds the cluster's own thanos-querier: through its Route, or from
// within the cluster through its Service. It is asked with the user's token;
// certificates and passwords are for the API server alone. The error is an
// *Error: NoMonitoring where the cluster has none, NoToken for a user without
// one.
func (c Cluster) Find(ctx context.Context) (*rest.Config, error) {
	if c.Config.BearerTokenFile == podToken {
		ca, err := c.certificates(ctx, namespace, "openshift-service-ca.crt", "service-ca.crt")
		return c.as(querierService, ca), err
	}
	route, err := c.Dynamic.Resource(routes()).Namespace(namespace).Get(ctx, querier, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, none()
	}
	if err != nil {
		return nil, unreadable("the Route "+namespace+"/"+querier, err)
	}
	hosts := hostsOf(route)
	if len(hosts) == 0 {
		return nil, none()
	}
	return c.through(ctx, "https://"+hosts[0])
}

// At finds a Prometheus that the user names. It is asked without credentials,
// but for those in the URL: only one that a Route of the cluster's own
// monitoring leads to is asked with the user's token.
func (c Cluster) At(address string) (Finder, error) {
	named, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the URL of the Prometheus cannot be read: %w", causeOf(err))
	}
	if (named.Scheme != "http" && named.Scheme != "https") || named.Host == "" {
		return nil, fmt.Errorf("the URL of the Prometheus is %q; it must be like https://prometheus.example.com", named.Redacted())
	}
	return func(ctx context.Context) (*rest.Config, error) {
		if named.Scheme == "https" && c.routesTo(ctx, named.Host) {
			return c.through(ctx, address)
		}
		return &rest.Config{Host: address}, nil
	}, nil
}

// causeOf leaves out the URL that an error of url.Parse repeats: it may hold a
// password.
func causeOf(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// routesTo says whether the host is one of the cluster's own monitoring. Who
// cannot tell does not send a token there.
func (c Cluster) routesTo(ctx context.Context, host string) bool {
	list, err := c.Dynamic.Resource(routes()).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 100})
	if err != nil {
		return false
	}
	for _, route := range list.Items {
		if slices.Contains(hostsOf(&route), host) {
			return true
		}
	}
	return false
}

// through asks a Route, whose certificate is that of the cluster's ingress.
func (c Cluster) through(ctx context.Context, address string) (*rest.Config, error) {
	if c.Config.BearerToken == "" && c.Config.BearerTokenFile == "" && c.Config.ExecProvider == nil && c.Config.AuthProvider == nil {
		return nil, &Error{
			Reason:      "NoToken",
			Message:     "the monitoring wants a token, and the kubeconfig has none: it has a certificate, perhaps",
			Remediation: logIn,
		}
	}
	ca, err := c.certificates(ctx, "openshift-config-managed", "default-ingress-cert", "ca-bundle.crt")
	return c.as(address, ca), err
}

// certificates reads a CA. Where there is none, or it is not for this user, the
// machine's own have to do: a certificate is checked in any case.
func (c Cluster) certificates(ctx context.Context, namespace, name, key string) ([]byte, error) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	configMap, err := c.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable("the ConfigMap "+namespace+"/"+name, err)
	}
	bundle, _, _ := unstructured.NestedString(configMap.Object, "data", key) // ConfigMaps hold strings
	return []byte(bundle), nil
}

// as asks an address with the token of the user, and the way there.
func (c Cluster) as(address string, ca []byte) *rest.Config {
	return &rest.Config{
		Host:            address,
		BearerToken:     c.Config.BearerToken,
		BearerTokenFile: c.Config.BearerTokenFile,
		ExecProvider:    c.Config.ExecProvider,
		AuthProvider:    c.Config.AuthProvider,
		UserAgent:       c.Config.UserAgent,
		Proxy:           c.Config.Proxy,
		Dial:            c.Config.Dial,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	}
}

func routes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "route.openshift.io", Version: "v1", Resource: "routes"}
}

// hostsOf are the host names that a Route answers to, those that an ingress
// took first.
func hostsOf(route *unstructured.Unstructured) []string {
	var hosts []string
	ingresses, _, _ := unstructured.NestedSlice(route.Object, "status", "ingress") // malformed is none
	for _, ingress := range ingresses {
		if ingress, ok := ingress.(map[string]any); ok {
			if host, _, _ := unstructured.NestedString(ingress, "host"); host != "" {
				hosts = append(hosts, host)
			}
		}
	}
	if host, _, _ := unstructured.NestedString(route.Object, "spec", "host"); host != "" {
		hosts = append(hosts, host)
	}
	return hosts
}

func none() *Error {
	return &Error{
		Reason:      "NoMonitoring",
		Message:     fmt.Sprintf("this cluster has no monitoring to ask: there is no Route %s/%s", namespace, querier),
		Remediation: "Name a Prometheus that has the cluster's metrics: --prometheus URL",
	}
}

// unreadable is an error of the API server on the way to the monitoring; that
// of a context stays one.
func unreadable(what string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	failure := &Error{
		Reason: "Unreachable", Message: fmt.Sprintf("cannot find the monitoring: could not read %s: %v", what, err),
		Remediation: "See that the API server answers, then run the preflight again. " + nameAnother, Err: err,
	}
	switch {
	case apierrors.IsForbidden(err):
		failure.Reason, failure.Remediation = "Forbidden", "Run the preflight as a user who may read it. "+nameAnother
	case apierrors.IsUnauthorized(err):
		failure.Reason, failure.Remediation = "Unauthorized", logIn
	}
	return failure
}

// Reads are the requests to the API server that finding the monitoring takes.
func Reads() []access.Request {
	return []access.Request{
		{Verb: "get", Group: "route.openshift.io", Resource: "routes", Namespace: namespace, Name: querier},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "default-ingress-cert"},
	}
}
