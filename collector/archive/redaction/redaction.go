// Package redaction answers: how are the names of a cluster replaced, so that the findings about it
// stay the same?
//
// [New] begins with what is known of the cluster, and [Names.Object] replaces the names of nodes,
// IP addresses and domains in an object. Equal names have equal replacements wherever they are,
// also within other names such as that of a static pod, and different names different ones. Nodes
// keep their order.
//
// API groups, labels and versions look like domains and addresses, so a domain is replaced only
// where the cluster's objects show that it is one: that of the API server, and hosts of URLs and of
// images. Domains of vendors stay, and so does the name of a node that is an ordinary word, such as
// "master": it is part of other texts, whose meaning would change.
package redaction

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxDomains bounds the domains that are learned.
	maxDomains = 10_000
	// firstAddress and firstAddress6 precede the replacements of addresses.
	firstAddress, firstAddress6 = "10.0.0.0", "2001:db8::"
)

// Names are the replacements of one archive. They are for one goroutine.
type Names struct {
	// nodes are the replacements of the names of nodes. byStart are those names by their first part.
	nodes   map[string]string
	byStart map[string][]string
	// kept are names of nodes that are not replaced.
	kept      []string
	domains   map[string]string
	addresses map[netip.Addr]netip.Addr
	// last and last6 are the newest replacements.
	last, last6 netip.Addr
}

// New makes the replacements of nodes, by their names and those of their hosts, and of domains.
func New(nodes [][]string, domains []string) *Names {
	n := &Names{
		nodes: map[string]string{}, byStart: map[string][]string{}, domains: map[string]string{}, addresses: map[netip.Addr]netip.Addr{},
		last: netip.MustParseAddr(firstAddress), last6: netip.MustParseAddr(firstAddress6),
	}
	sorted := slices.SortedFunc(slices.Values(nodes), slices.Compare)
	for i, names := range sorted {
		for at, name := range names {
			n.addNode(name, fmt.Sprintf("redacted-node-%0*d", len(fmt.Sprint(len(sorted))), i+1), at > 0)
		}
	}
	for _, domain := range domains {
		n.addDomain(domain)
	}
	return n
}

// Kept are the names of nodes that are not replaced.
func (n *Names) Kept() []string { return n.kept }

// ordinary matches names that are words.
var ordinary = regexp.MustCompile(`^[a-z]*$`)

// addNode has a name of a node replaced, which may be another one of a host.
func (n *Names) addNode(name, replacement string, another bool) { //nolint:revive // what kind of name it is
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

// vendors are domains that say nothing of a cluster, with those within it.
func vendors() []string {
	return []string{
		"openshift.com", "openshift.io", "openshift.org", "okd.io", "redhat.com", "redhat.io", "quay.io", "coreos.com", "operatorframework.io",
		"kubernetes.io", "k8s.io", "docker.io", "github.com", "ghcr.io", "gcr.io", "googleapis.com", "golang.org", "json-schema.org", "w3.org",
		"prometheus.io", "example.com", "svc", "local", "localhost", "invalid",
	}
}

// addDomain has a domain replaced, and all within it.
func (n *Names) addDomain(domain string) {
	domain = strings.Trim(strings.ToLower(domain), ".")
	labels := strings.Split(domain, ".")
	for at := range labels {
		part := strings.Join(labels[at:], ".")
		if slices.Contains(vendors(), part) || n.domains[part] != "" {
			return
		}
	}
	if len(labels) < 2 || !hostname.MatchString(domain) || addressOf(domain).IsValid() || n.nodes[domain] != "" || len(n.domains) >= maxDomains {
		return
	}
	n.domains[domain] = fmt.Sprintf("redacted-%d.example.com", len(n.domains)+1)
}

var (
	hostname = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	// hosts matches those of URLs, and of images by their digest.
	hosts = regexp.MustCompile(`(?:[a-z][a-z0-9+.-]*://(?:[^/\s@"]*@)?([A-Za-z0-9.-]+))|(?:(?:^|[\s"'=])([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?::\d+)?/[a-z0-9._/-]+@sha256:)`)
	// word matches what can be, or have, a name or an address.
	word = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9.-]*|[0-9A-Fa-f]*(?::[0-9A-Fa-f.]*){2,}`)
	// sextets matches what may be an IPv6 address.
	sextets = regexp.MustCompile(`[0-9A-Fa-f]*(?::[0-9A-Fa-f.]*){2,}`)
)

// Text replaces the names in a text.
func (n *Names) Text(text string) string {
	if text == "" {
		return text
	}
	for _, match := range hosts.FindAllStringSubmatch(text, -1) {
		n.addDomain(match[1] + match[2])
	}
	if strings.Count(text, ":") > 1 {
		text = sextets.ReplaceAllStringFunc(text, n.address6)
	}
	return word.ReplaceAllStringFunc(text, n.word)
}

func (n *Names) address6(text string) string {
	if address := addressOf(text); address.Is6() {
		return n.address(address).String()
	}
	return text
}

// word replaces the names in a word.
func (n *Names) word(word string) string {
	name := strings.TrimRight(word, ".-")
	rest := word[len(name):]
	if address := addressOf(name); address.Is4() {
		return n.address(address).String() + rest
	}
	if replacement := n.nodes[name]; replacement != "" {
		return replacement + rest
	}
	lower := strings.ToLower(name)
	for at := 0; at >= 0 && len(n.domains) > 0; {
		if replacement := n.domains[lower[at:]]; replacement != "" {
			return n.within(name[:at]) + replacement + rest
		}
		next := strings.IndexByte(lower[at:], '.')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return n.within(name) + rest
}

// within replaces the names of nodes that are parts of a name, between "-" and ".".
func (n *Names) within(name string) string {
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
	return replaced.String()
}

func addressOf(text string) netip.Addr {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Addr{}
	}
	return address
}

func (n *Names) address(address netip.Addr) netip.Addr {
	if address.IsUnspecified() || address.IsLoopback() || address == netip.MustParseAddr("255.255.255.255") {
		return address
	}
	replacement, known := n.addresses[address]
	if !known {
		last := &n.last
		if address.Is6() {
			last = &n.last6
		}
		*last = last.Next()
		replacement = *last
		n.addresses[address] = replacement
	}
	return replacement
}

// Object replaces the names in a value of JSON, in place, and returns it. PEM is removed: it has
// names that cannot be replaced. The certificate authorities of webhooks, on which findings rest,
// stay.
func (n *Names) Object(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return n.fields(value)
	case []any:
		for i := range value {
			value[i] = n.Object(value[i])
		}
	case string:
		if strings.Contains(value, "-----BEGIN ") {
			return ""
		}
		return n.Text(value)
	}
	return value
}

func (n *Names) fields(object map[string]any) map[string]any {
	for key, value := range object {
		replaced := value
		if host, ok := value.(string); ok && slices.Contains(hostFields(), key) {
			n.addDomain(host)
		}
		if key != authority {
			replaced = n.Object(value)
		}
		if name := n.Text(key); name != key {
			delete(object, key)
			key = name
		}
		object[key] = replaced
	}
	return object
}

// authority is the field with the certificate authority of a webhook or an APIService, in base64.
const authority = "caBundle"

// hostFields are the fields with a host, such as that of a load balancer.
func hostFields() []string { return []string{"hostname", "host", "externalName", "baseDomain"} }
