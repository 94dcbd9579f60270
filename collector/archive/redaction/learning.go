package redaction

import (
	"regexp"
	"slices"
	"strings"
)

// reserved are domains of which all hosts stay: those of keys of labels and annotations that have a meaning
// for checks, and those of Services.
func reserved() []string {
	return []string{
		"openshift.io", "kubernetes.io", "k8s.io", "x-k8s.io", "operatorframework.io", "coreos.com", "prometheus.io", "kubevirt.io", "metal3.io",
		"argoproj.io", "helm.sh", "cnpg.io", "strimzi.io", "longhorn.io", "libopenstorage.org", "rook.io", "elastic.co", "svc", "cluster.local", "localhost",
		"localhost.localdomain",
	}
}

// public are hosts that say nothing of a cluster. Another host of their domains may be that of a customer.
func public() []string {
	return []string{
		"openshift.com", "api.openshift.com", "docs.openshift.com", "mirror.openshift.com", "infogw.api.openshift.com", "console.openshift.com", "cloud.openshift.com",
		"openshift.org", "registry.ci.openshift.org", "okd.io", "docs.okd.io", "www.okd.io", "amd64.origin.releases.ci.openshift.org",
		"redhat.com", "access.redhat.com", "bugzilla.redhat.com", "cloud.redhat.com", "console.redhat.com", "docs.redhat.com", "issues.redhat.com",
		"registry.access.redhat.com", "registry.connect.redhat.com", "sso.redhat.com", "www.redhat.com", "issues.jboss.org",
		"redhat.io", "registry.redhat.io", "quay.io", "cdn.quay.io", "docker.io", "index.docker.io", "registry-1.docker.io", "ghcr.io", "gcr.io", "k8s.gcr.io",
		"github.com", "raw.githubusercontent.com", "storage.googleapis.com", "metadata.google.internal", "golang.org", "pkg.go.dev", "json-schema.org", "w3.org", "www.w3.org",
		"example.com",
	}
}

// replaced matches the replacements of domains.
var replaced = regexp.MustCompile(`^redacted-[0-9]+\.example\.com$`)

// addDomain has a domain replaced, and all within it. It is false for one that stays.
func (n *Names) addDomain(domain string) bool {
	domain = strings.Trim(strings.ToLower(domain), ".")
	if _, known := n.domains[domain]; known {
		return true
	}
	if !hostname.MatchString(domain) || addressOf(domain).IsValid() || n.nodes[domain] != "" || slices.Contains(public(), domain) || replaced.MatchString(domain) {
		return false
	}
	for _, of := range reserved() {
		if domain == of || strings.HasSuffix(domain, "."+of) {
			return false
		}
	}
	for _, group := range n.groups {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			n.keep(domain)
			return false
		}
	}
	if len(n.domains) >= maxDomains {
		n.exceeded = true
		return false
	}
	n.domains[domain] = ""
	return true
}

func (n *Names) keep(domain string) {
	if !slices.Contains(n.kept, domain) {
		n.kept = append(n.kept, domain)
	}
}

var (
	// hostname matches names of hosts with a domain, which does not begin with a digit at its end.
	hostname = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\.[a-z]([a-z0-9-]*[a-z0-9])?$`)
	// urls matches the hosts of URLs, also where slashes are escaped, and mails those of mail addresses.
	urls  = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*:(?:\\?/){2}(?:[^/\s@"]*@)?([A-Za-z0-9.-]+)`)
	mails = regexp.MustCompile(`[A-Za-z0-9._%+-]@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)`)
	// images matches the registries of images with a tag or a digest.
	images = regexp.MustCompile(`(?:^|[^A-Za-z0-9./@:_-])([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?::\d+)?/[a-z0-9._/-]+(?::[A-Za-z0-9_][A-Za-z0-9_.-]*|@sha256:)`)
	// private matches hosts of domains that exist only within networks.
	private = regexp.MustCompile(`\.(internal|intranet|corp|lan|home\.arpa|localdomain)$`)
)

// hostFields are the fields with hosts, images or their registries, such as that of a load balancer, an item
// of a list of mirrors, or an entry of a list with commas.
func hostFields() []string {
	return []string{
		"hostname", "host", "hostnames", "externalName", "baseDomain", "domain", "domainName", "etcdDiscoveryDomain", "address", "image", "source", "mirrors", "scopes",
		"allowedRegistries", "blockedRegistries", "insecureRegistries", "containerRuntimeSearchRegistries", "externalRegistryHostnames",
		"internalRegistryHostname", "httpProxy", "httpsProxy", "noProxy", "prefix", "signedPrefix",
	}
}

// Learn finds the domains and addresses in a value of JSON.
func (n *Names) Learn(value any) { n.learn("", value) }

// learn finds names in the value of a field; items have the field of their list.
func (n *Names) learn(field string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			n.learnText("", key)
			if key != authority {
				n.learn(key, member)
			}
		}
	case []any:
		for _, item := range value {
			n.learn(field, item)
		}
	case string:
		if !strings.Contains(value, "-----BEGIN ") { // it is removed
			n.learnText(field, value)
		}
	}
}

func (n *Names) learnText(field, text string) {
	if slices.Contains(hostFields(), field) {
		for entry := range strings.SplitSeq(text, ",") {
			n.addDomain(hostOf(entry))
		}
	}
	if strings.ContainsAny(text, "/@") {
		for _, pattern := range []*regexp.Regexp{urls, images, mails} {
			for _, match := range pattern.FindAllStringSubmatch(text, -1) {
				n.addDomain(match[1])
			}
		}
	}
	n.addresses.learn(text)
	for _, each := range word.FindAllString(text, -1) {
		if name := strings.TrimRight(each, ".-"); private.MatchString(name) {
			n.addDomain(name)
		}
	}
}

func (a *addresses) learn(text string) {
	if strings.Count(text, ":") > 1 {
		for _, each := range sextets.FindAllString(text, -1) {
			a.add(addressOf(each))
		}
	}
	for _, each := range word.FindAllString(text, -1) {
		if address := addressOf(strings.TrimRight(each, ".-")); address.Is4() {
			a.add(address)
		}
	}
	if strings.Contains(text, dashes) {
		for _, machine := range dashed.FindAllString(text, -1) {
			a.add(undashed(machine))
		}
	}
}

// hostOf is the host of what may be a URL, an image, a wildcard or an entry of noProxy.
func hostOf(text string) string {
	text = strings.TrimSpace(text)
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	text, _, _ = strings.Cut(text, "/")
	text = text[strings.LastIndexByte(text, '@')+1:]
	text, _, _ = strings.Cut(text, ":")
	return strings.TrimPrefix(text, "*.")
}
