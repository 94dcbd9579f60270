package imagestream

import (
	"net"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// allowlist is from where openshift-apiserver imports images (openshift-apiserver
// pkg/image/apis/image/validation/whitelist/whitelister.go). It is nil where that is everywhere.
type allowlist []hostPort

// hostPort is a pattern of hosts and one of ports, in which * is any text and ? any character.
type hostPort struct{ host, port string }

func allowlistOf(image *configv1.Image) allowlist {
	allowed := slices.Clone(image.Spec.AllowedRegistriesForImport)
	if len(allowed) == 0 {
		return nil
	}
	if internal := image.Status.InternalRegistryHostname; internal != "" { // the list need not have it
		allowed = append(allowed, configv1.RegistryLocation{DomainName: internal})
	}
	var list allowlist
	for _, each := range allowed {
		host, port, hasPort := strings.Cut(each.DomainName, ":")
		switch {
		case hasPort: // one with two colons allows nothing: the server does not start with it
		case each.Insecure:
			port = "80"
		default:
			port = "443"
		}
		list = append(list, hostPort{host, port})
	}
	return list
}

// admits reports whether openshift-apiserver imports from a registry; byDefault is its port where it has none: that of
// HTTPS, or anyPort for one that is insecure, which may be at either default port. The names of Docker Hub count as one.
func (l allowlist) admits(registry, byDefault string) bool {
	hosts, port := []string{registry}, byDefault
	if host, stated, err := net.SplitHostPort(registry); err == nil {
		hosts, port = []string{host}, stated
	}
	if isHub(registry) {
		hosts = []string{hub, "registry-1." + hub}
	}
	return slices.ContainsFunc(l, func(allowed hostPort) bool {
		covers := matches(port, allowed.port)
		if port == anyPort {
			covers = slices.Contains([]string{"80", "443", "*"}, allowed.port)
		}
		return covers && slices.ContainsFunc(hosts, func(host string) bool { return matches(host, allowed.host) })
	})
}

const (
	hub = "docker.io"
	// httpsPort and anyPort are default ports.
	httpsPort, anyPort = "443", ""
)

func isHub(registry string) bool {
	return slices.Contains([]string{hub, "index." + hub, "registry-1." + hub}, registry)
}

// matches is IsWildcardMatch of wildcard.go.
func matches(text, pattern string) bool {
	pattern = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	matched, err := regexp.MatchString(`^(?s:`+pattern+`)$`, text)
	return err == nil && matched
}
