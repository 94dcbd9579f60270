package reduction

import (
	"regexp"
	"strings"
)

var (
	// users matches the user info of URLs, also where slashes are escaped as in JSON within a text.
	users = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:(?:\\?/){2})[^/\\?#\s"'<>@]*(?:@[^/\\?#\s"'<>@]*)*@`)
	// rawUsers matches a password with characters that had to be escaped, such as a slash.
	rawUsers = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:(?:\\?/){2})([^/\\\s"'<>@:]*):([^\s"'<>@]*)@`)
	// port matches what follows a host that is no password: a port and a path.
	port = regexp.MustCompile(`^[0-9]{1,5}[/?#\\]`)
)

// WithoutUsers is a text without the user info of URLs, such as USER:PASSWORD in http://USER:PASSWORD@HOST.
// What is no URL stays: a password that stands alone cannot be recognized.
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
