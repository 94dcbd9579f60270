// Package redaction answers: how are the names of a cluster replaced without changing the findings about it?
//
// [New] starts with the names that are known of the cluster, [Names.Learn] finds more names in each of its
// objects, and after [Names.Seal], [Names.Object] replaces them: the names of nodes, IP addresses and domains. The
// set of replaced names depends on all objects, and not on their order. Equal names get equal replacements
// everywhere, even within other names such as the name of a static pod, and different names get different ones.
// Nodes and addresses keep their order.
//
// API groups, labels and versions look like domains and addresses, so a domain is replaced only where the
// cluster's objects show that it is one (learning.go). Public hosts of vendors stay, and so do a domain that is,
// or ends, an API group of the cluster, and the name of a node that is an ordinary word, such as "master": they
// are part of other texts, whose meaning would change.
package redaction

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// maxDomains bounds the domains that are learned.
const maxDomains = 50_000

// Names are the replacements of one archive. They are for one goroutine.
type Names struct {
	// nodes has the replacements of the names of nodes, byStart these names by their first part.
	nodes   map[string]string
	byStart map[string][]string
	kept    []string
	groups  []string
	// within are the domains of the cluster, with all hosts within them.
	within []string
	// domains are the replacements, which are empty before Seal.
	domains   map[string]string
	addresses addresses
	// exceeded is true where there are more domains than can be learned.
	exceeded bool
}

// Known are the names of a cluster that are known before its objects are read.
type Known struct {
	// Nodes are the names of each node and of its host.
	Nodes [][]string
	// Domains are the domains of the cluster. What precedes them in the name of a host stays.
	Domains []string
	// Groups are the API groups of the cluster, which stay.
	Groups []string
}

// New makes the replacements of names that are known.
func New(known Known) *Names {
	n := &Names{
		nodes: map[string]string{}, byStart: map[string][]string{}, domains: map[string]string{}, addresses: newAddresses(), groups: known.Groups,
	}
	sorted := slices.SortedFunc(slices.Values(known.Nodes), slices.Compare)
	for i, names := range sorted {
		for at, name := range names {
			n.addNode(name, fmt.Sprintf("redacted-node-%0*d", len(fmt.Sprint(len(sorted))), i+1), at > 0)
		}
	}
	for _, domain := range known.Domains {
		if domain = strings.Trim(strings.ToLower(domain), "."); n.addDomain(domain) {
			n.within = append(n.within, domain)
		}
	}
	return n
}

// Seal assigns the replacements of the learned names. It returns an error if there are too many.
func (n *Names) Seal() error {
	if n.exceeded {
		return fmt.Errorf("the names cannot be replaced: there are more than %d domains", maxDomains)
	}
	maps.DeleteFunc(n.domains, func(domain, _ string) bool {
		return n.nodes[domain] != "" || slices.ContainsFunc(n.within, func(of string) bool { return strings.HasSuffix(domain, "."+of) })
	})
	for i, domain := range slices.Sorted(maps.Keys(n.domains)) {
		n.domains[domain] = fmt.Sprintf("redacted-%d.example.com", i+1)
	}
	return n.addresses.seal()
}

// Kept are the names of nodes or domains that are not replaced, sorted.
func (n *Names) Kept() []string {
	return slices.Compact(slices.Sorted(slices.Values(n.kept)))
}

// ordinary matches names that are words.
var ordinary = regexp.MustCompile(`^[a-z]*$`)

// addNode has a name of a node replaced, which may be another one of a host.
func (n *Names) addNode(name, replacement string, another bool) { //nolint:revive // another describes the name, and selects no mode
	short, _, qualified := strings.Cut(name, ".")
	switch {
	case n.nodes[name] != "" || netip.Addr.IsValid(addressOf(name)):
	case ordinary.MatchString(short):
		if !another && !qualified {
			n.kept = append(n.kept, name)
			return
		}
		if qualified {
			n.set(name, replacement)
		}
	default:
		n.set(name, replacement)
		if qualified && n.nodes[short] == "" {
			n.set(short, replacement)
		}
	}
}

func (n *Names) set(name, replacement string) {
	n.nodes[name] = replacement
	start := name[:partEnd(name)]
	n.byStart[start] = append(n.byStart[start], name)
	slices.SortFunc(n.byStart[start], func(a, b string) int { return len(b) - len(a) })
}

// partEnd is the length of the part of a name before the first "-" or ".".
func partEnd(name string) int {
	if end := strings.IndexAny(name, "-."); end >= 0 {
		return end
	}
	return len(name)
}

var (
	// word matches what can be, or have, a name or an address.
	word = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9.-]*|[0-9A-Fa-f]*(?::[0-9A-Fa-f.]*){2,}`)
	// sextets matches what may be an IPv6 address.
	sextets = regexp.MustCompile(`[0-9A-Fa-f]*(?::[0-9A-Fa-f.]*){2,}`)
	dashed  = regexp.MustCompile(`\bip-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}\b`)
)

// Text replaces the names in a text.
func (n *Names) Text(text string) string {
	if text == "" {
		return text
	}
	if strings.Count(text, ":") > 1 {
		text = sextets.ReplaceAllStringFunc(text, n.address6)
	}
	return word.ReplaceAllStringFunc(text, n.word)
}

func (n *Names) address6(text string) string {
	if address := addressOf(text); address.Is6() {
		return n.addresses.replace(address).String()
	}
	return text
}

func (n *Names) word(word string) string {
	name := strings.TrimRight(word, ".-")
	rest := word[len(name):]
	if address := addressOf(name); address.Is4() {
		return n.addresses.replace(address).String() + rest
	}
	if replacement := n.nodes[name]; replacement != "" {
		return replacement + rest
	}
	lower := strings.ToLower(name)
	for at := 0; at >= 0 && len(n.domains) > 0; {
		if replacement := n.domains[lower[at:]]; replacement != "" {
			return n.parts(name[:at]) + replacement + rest
		}
		next := strings.IndexByte(lower[at:], '.')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return n.parts(name) + rest
}

// parts replaces the names of nodes that are parts of a name, between "-" and ".", and addresses with dashes.
func (n *Names) parts(name string) string {
	var replaced strings.Builder
	for len(name) > 0 {
		end := partEnd(name)
		for _, node := range n.byStart[name[:end]] {
			if rest, ok := strings.CutPrefix(name, node); ok && (rest == "" || partEnd(rest) == 0) {
				replaced.WriteString(n.nodes[node])
				name, end = rest, partEnd(rest)
				break
			}
		}
		end = min(end+1, len(name))
		replaced.WriteString(name[:end])
		name = name[end:]
	}
	return dashed.ReplaceAllStringFunc(replaced.String(), func(text string) string {
		if address := undashed(text); address.IsValid() {
			return dashes + strings.ReplaceAll(n.addresses.replace(address).String(), ".", "-")
		}
		return text
	})
}

// Object returns a value of JSON with the names replaced. PEM is removed, because it contains names that cannot be
// replaced; only the validity of certificates remains. The CA certificates of webhooks remain, because
// findings rely on them.
func (n *Names) Object(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return n.fields(value)
	case []any:
		replaced := make([]any, len(value))
		for i := range value {
			replaced[i] = n.Object(value[i])
		}
		return replaced
	case string:
		if strings.Contains(value, "-----BEGIN ") {
			return validities(value)
		}
		return n.Text(value)
	}
	return value
}

// fields are the fields of an object in a new one: a key that was added while its keys are read would be
// read, and replaced, again.
func (n *Names) fields(object map[string]any) map[string]any {
	replaced := make(map[string]any, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		if key != authority {
			value = n.Object(value)
		}
		replaced[n.Text(key)] = value
	}
	return replaced
}

// authority is the field with the certificate authority of a webhook or an APIService, in base64.
const authority = "caBundle"

// reserved are domains whose hosts are all kept: the domains in keys of labels and annotations that have a meaning
// for checks, and the domains of Services.
func reserved() []string {
	return []string{
		"openshift.io", "kubernetes.io", "k8s.io", "x-k8s.io", "operatorframework.io", "coreos.com", "prometheus.io", "kubevirt.io", "metal3.io",
		"argoproj.io", "helm.sh", "cnpg.io", "strimzi.io", "longhorn.io", "libopenstorage.org", "rook.io", "elastic.co", "svc", "cluster.local",
		"localhost",
		"localhost.localdomain",
	}
}

// public are hosts that reveal nothing about a cluster. Another host of their domains may belong to a customer.
func public() []string {
	return []string{
		"openshift.com", "api.openshift.com", "docs.openshift.com", "mirror.openshift.com", "infogw.api.openshift.com", "console.openshift.com",
		"cloud.openshift.com",
		"openshift.org", "registry.ci.openshift.org", "okd.io", "docs.okd.io", "www.okd.io", "amd64.origin.releases.ci.openshift.org",
		"redhat.com", "access.redhat.com", "bugzilla.redhat.com", "cloud.redhat.com", "console.redhat.com", "docs.redhat.com",
		"issues.redhat.com",
		"registry.access.redhat.com", "registry.connect.redhat.com", "sso.redhat.com", "www.redhat.com", "issues.jboss.org",
		"redhat.io", "registry.redhat.io", "quay.io", "cdn.quay.io", "docker.io", "index.docker.io", "registry-1.docker.io", "ghcr.io", "gcr.io",
		"k8s.gcr.io",
		"github.com", "raw.githubusercontent.com", "storage.googleapis.com", "metadata.google.internal", "golang.org", "pkg.go.dev",
		"json-schema.org", "w3.org", "www.w3.org",
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
	if !hostname.MatchString(domain) || addressOf(domain).IsValid() || n.nodes[domain] != "" || slices.Contains(public(), domain) ||
		replaced.MatchString(domain) {
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
	// urls matches the hosts of URLs, also if slashes are escaped, and mails the hosts of mail addresses.
	urls  = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*:(?:\\?/){2}(?:[^/\s@"]*@)?([A-Za-z0-9.-]+)`)
	mails = regexp.MustCompile(`[A-Za-z0-9._%+-]@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)`)
	// images matches the registries of images with a tag or a digest.
	images = regexp.MustCompile(
		`(?:^|[^A-Za-z0-9./@:_-])([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?::\d+)?/[a-z0-9._/-]+(?::[A-Za-z0-9_][A-Za-z0-9_.-]*|@sha256:)`)
	// private matches hosts of domains that exist only within networks.
	private = regexp.MustCompile(`\.(internal|intranet|corp|lan|home\.arpa|localdomain)$`)
)

// hostFields are the fields with hosts, images or their registries, such as the host of a load balancer, an item
// of a list of mirrors, or an entry of a comma-separated list.
func hostFields() []string {
	return []string{
		"hostname", "host", "hostnames", "externalName", "baseDomain", "domain", "domainName", "etcdDiscoveryDomain", "address", "image",
		"source", "mirrors", "scopes",
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
