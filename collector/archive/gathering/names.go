package gathering

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/openshift/update-preflight/collector/archive/redaction"
	"github.com/openshift/update-preflight/collector/cluster"
)

// nodePage is the number of nodes of a page: each has a list of images.
const nodePage = 50

// learn reads which names are replaced. Without the nodes nothing can be.
func (g *gatherer) learn(ctx context.Context) error {
	if !g.request.Redact {
		return nil
	}
	g.step("reading the names to replace")
	nodes, err := nodeNames(ctx, g.cluster)
	if err != nil {
		return fmt.Errorf("names cannot be replaced: could not list the nodes: %w", err)
	}
	infrastructure, err := g.cluster.OpenShift.ConfigV1().Infrastructures().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("names cannot be replaced: could not read the Infrastructure \"cluster\": %w", err)
	}
	groups := map[string]bool{}
	for resource := range g.api.resources {
		groups[resource.Group] = true
	}
	names := redaction.New(redaction.Known{Nodes: nodes, Domains: domainsOf(infrastructure), Groups: slices.Sorted(maps.Keys(groups))})
	file, err := g.out.files.Scratch()
	if err != nil {
		return &writeError{err}
	}
	g.spool = newSpool(file, names)
	g.into, g.out.names = g.spool, names
	return nil
}

// nodeNames are the names of each node, its own first.
func nodeNames(ctx context.Context, c *cluster.Cluster) ([][]string, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.Kubernetes.CoreV1().Nodes().List(ctx, options)
	})
	pages.PageSize, pages.PageBufferSize = nodePage, 1
	var names [][]string
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		node, ok := item.(*corev1.Node)
		if !ok {
			return errors.ErrUnsupported // the list has no others
		}
		all := []string{node.Name, node.Labels[corev1.LabelHostname]}
		for _, address := range node.Status.Addresses {
			if address.Type != corev1.NodeInternalIP && address.Type != corev1.NodeExternalIP {
				all = append(all, address.Address)
			}
		}
		names = append(names, slices.DeleteFunc(all, func(name string) bool { return name == "" }))
		return nil
	})
	return names, err
}

// domainsOf returns the domains of the API server.
func domainsOf(infrastructure *configv1.Infrastructure) []string {
	if infrastructure == nil {
		return nil
	}
	domains := []string{infrastructure.Status.EtcdDiscoveryDomain}
	for _, address := range []string{infrastructure.Status.APIServerURL, infrastructure.Status.APIServerInternalURL} {
		parsed, err := url.Parse(address)
		if err != nil || net.ParseIP(parsed.Hostname()) != nil {
			continue
		}
		host := parsed.Hostname()
		for _, prefix := range []string{"api.", "api-int."} {
			host = strings.TrimPrefix(host, prefix)
		}
		domains = append(domains, host)
	}
	return domains
}
