package reduction

import (
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/snapshot/reported"
)

var (
	// users matches the user info of URLs, also where slashes are escaped as in JSON within a text.
	users = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:(?:\\?/){2})[^/\\?#\s"'<>@]*(?:@[^/\\?#\s"'<>@]*)*@`)
	// rawUsers matches a password with characters that had to be escaped, such as a slash.
	rawUsers = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:(?:\\?/){2})([^/\\\s"'<>@:]*):([^\s"'<>@]*)@`)
	// port matches what follows a host that is no password: a port and a path.
	port = regexp.MustCompile(`^[0-9]{1,5}[/?#\\]`)
)

// WithoutUsers returns a text without the user info of URLs, such as USER:PASSWORD in http://USER:PASSWORD@HOST.
// Other text remains: a password outside a URL cannot be recognized.
func WithoutUsers(text string) string {
	if !strings.Contains(text, "@") || !strings.Contains(text, ":") {
		return text
	}
	text = users.ReplaceAllString(text, "$1")
	return rawUsers.ReplaceAllStringFunc(text, func(match string) string {
		parts := rawUsers.FindStringSubmatch(match)
		if port.MatchString(parts[3]) {
			return match
		}
		return parts[1]
	})
}

// withoutUser is the address of a proxy without its user info, also where it has no scheme.
func withoutUser(proxy string) string {
	if at := strings.LastIndexByte(proxy, '@'); at >= 0 && !strings.Contains(proxy, "//") {
		return proxy[at+1:]
	}
	return WithoutUsers(proxy)
}

// WithoutUsersIn is a value of JSON without the user info of URLs in its texts and keys.
func WithoutUsersIn(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, member := range value {
			kept[WithoutUsers(key)] = WithoutUsersIn(member)
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i := range value {
			kept[i] = WithoutUsersIn(value[i])
		}
		return kept
	case string:
		return WithoutUsers(value)
	}
	return value
}

// tree are the fields of a value that are kept, with what is kept of them; a nil one keeps all. Lists have
// the fields of their items.
type tree map[string]tree

// none at the end of a path keeps that the field exists, and nothing of its value.
const none = "{}"

// fields is the tree of paths such as "spec.nodeName".
func fields(paths ...string) tree {
	t := tree{}
	for _, path := range paths {
		t.add(strings.Split(path, "."))
	}
	return t
}

func (t tree) add(path []string) {
	below, known := t[path[0]]
	switch {
	case known && below == nil: // all is kept
	case len(path) == 1:
		t[path[0]] = nil
	case path[1] == none && !known:
		t[path[0]] = tree{}
	default:
		if below == nil {
			below = tree{}
			t[path[0]] = below
		}
		below.add(path[1:])
	}
}

// withReport is the tree with what the object reports (package reported).
func (t tree) withReport(object map[string]any) tree {
	all := t.clone()
	for part, fields := range reported.Parts(object) {
		for name, value := range fields {
			for _, path := range pathsOf(name, value) {
				all.add(append([]string{part}, path...))
			}
		}
	}
	return all
}

// pathsOf returns the paths to keep below a field: five fields of each condition, and the names of the fields of a map.
func pathsOf(name string, value any) [][]string {
	var paths [][]string
	items, isList := value.([]any)
	for _, condition := range []string{"type", "status", "reason", "message", "lastTransitionTime"} {
		switch {
		case name == "conditions":
			paths = append(paths, []string{name, condition})
		case isList && hasConditions(items):
			paths = append(paths, []string{name, "conditions", condition})
		}
	}
	members, _ := value.(map[string]any)
	for member, of := range members {
		if empty, ok := of.(map[string]any); ok && len(empty) == 0 {
			paths = append(paths, []string{name, member, none})
		} else {
			paths = append(paths, []string{name, member})
		}
	}
	if len(paths) == 0 {
		paths = append(paths, []string{name})
	}
	return paths
}

func hasConditions(items []any) bool {
	return slices.ContainsFunc(items, func(item any) bool {
		of, _ := item.(map[string]any)
		return of["conditions"] != nil
	})
}

func (t tree) clone() tree {
	if t == nil {
		return nil
	}
	all := tree{}
	for name, below := range t {
		all[name] = below.clone()
	}
	return all
}

func under(prefix string, paths ...string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, prefix+"."+path)
	}
	return all
}

// maxDepth bounds the values within each other; what is deeper is left out.
const maxDepth = 100

// of reduces a value to what is kept; nil if that is nothing.
func (t tree) of(value any) any { return t.within(value, maxDepth) }

func (t tree) within(value any, depth int) any {
	if depth == 0 {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		return t.members(value, depth)
	case []any:
		kept := make([]any, 0, len(value))
		for _, item := range value {
			if item := t.within(item, depth-1); item != nil {
				kept = append(kept, item)
			}
		}
		return kept
	}
	if t != nil {
		return nil // a value that has another form than the fields that are read
	}
	if text, ok := value.(string); ok {
		return WithoutUsers(text)
	}
	return value
}

func (t tree) members(object map[string]any, depth int) map[string]any {
	if t == nil {
		t = templateOf(object)
	}
	kept := make(map[string]any, len(object))
	for key, member := range object {
		if below, listed := t.below(key); listed {
			below.put(kept, key, member, depth)
		}
	}
	return kept
}

func (t tree) put(kept map[string]any, key string, member any, depth int) {
	if text, ok := member.(string); ok && t == nil && strings.HasSuffix(strings.ToLower(key), "proxy") {
		member = withoutUser(text)
	}
	if reduced := t.within(member, depth-1); reduced != nil || member == nil {
		kept[WithoutUsers(key)] = reduced
	}
}

// below are the fields that are kept of the value of a key; false where the value is not kept. A field that ends
// in a slash is for all keys that begin so.
func (t tree) below(key string) (tree, bool) {
	if t == nil {
		return nil, true
	}
	below, listed := t[key]
	if prefix, _, ok := strings.Cut(key, "/"); ok && !listed {
		below, listed = t[prefix+"/"]
	}
	return below, listed
}

// templateOf are the fields that are kept of the specification of a pod, or of a template with one, in a
// value of which all others are; nil for any other value.
func templateOf(value map[string]any) tree {
	if isPodSpec(value) {
		return podSpecTree()
	}
	if spec, ok := value["spec"].(map[string]any); ok && isPodSpec(spec) {
		return podTemplateTree()
	}
	return nil
}

func isPodSpec(value map[string]any) bool {
	_, ok := value["containers"].([]any)
	return ok
}
