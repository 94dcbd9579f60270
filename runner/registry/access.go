package registry

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/registry/credential"
	"github.com/openshift/update-preflight/signature/outbound"
)

// Local is the configuration of this machine.
type Local struct {
	// AuthFiles are paths of credentials files of the user, in the format of
	// containers-auth.json(5) or of Docker's config.json, in order of precedence.
	// Missing files are ignored.
	AuthFiles []string
	// Transport sends all requests to registries; nil means the network, with its proxies and CAs.
	Transport http.RoundTripper
}

// Access resolves pull specs to repositories, credentials and transports. Its methods may be called concurrently.
type Access struct {
	rules       rules
	credentials []credential.Store
	network     network
	warnings    []finding.Finding
	// ofCluster is how many of the credentials and warnings come from the cluster; the others are of this machine.
	ofCluster struct{ credentials, warnings int }

	mutex sync.Mutex
	bases map[base]http.RoundTripper
	// guard knows the addresses of the registries that were named.
	guard outbound.Guard
}

// Own is the access without a cluster: no mirrors, and only the user's credentials.
func Own(ctx context.Context, local Local) *Access {
	a := &Access{network: network{override: local.Transport}, bases: map[base]http.RoundTripper{}}
	a.addLocal(ctx, local)
	return a
}

// OfNodes is the same access without the credentials of this machine, which the nodes of the cluster do not have.
func (a *Access) OfNodes() *Access {
	return &Access{
		rules: a.rules, network: a.network, bases: map[base]http.RoundTripper{}, ofCluster: a.ofCluster,
		credentials: slices.Clip(a.credentials[:a.ofCluster.credentials]), warnings: slices.Clone(a.warnings[:a.ofCluster.warnings]),
	}
}

func (a *Access) addLocal(ctx context.Context, local Local) {
	for _, path := range local.AuthFiles {
		own, err := credential.ReadAuthFile(ctx, path)
		if err != nil {
			a.warn(reasonAuthFileUnreadable, err.Error(), "Correct the file, or log in again with `podman login`.")
			continue
		}
		a.credentials = append(a.credentials, own)
	}
}

// Warnings report configuration that could not be read or that nodes ignore, so
// that they may pull images differently. They do not block.
func (a *Access) Warnings() []finding.Finding { return slices.Clone(a.warnings) }

func (a *Access) warn(reason finding.Reason, message, remediation string, actions ...finding.Action) {
	a.warnings = append(a.warnings, warning(finding.Warn(reason, "%s", message).Remedy("%s", remediation).Do(actions...)))
}

// Close closes idle connections.
func (a *Access) Close() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, transport := range a.bases {
		(&http.Client{Transport: transport}).CloseIdleConnections()
	}
}

func (a *Access) credentialsFor(repository string) []credential.Credential {
	var found []credential.Credential
	for _, each := range a.credentials {
		if best, ok := each.Find(repository); ok {
			found = append(found, best)
		}
	}
	if len(found) == 0 {
		return []credential.Credential{{}}
	}
	return found
}
