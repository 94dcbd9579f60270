package finding

import "strings"

// MaxName is the length of the longest name that ClusterVersion accepts in
// spec.desiredUpdate.acceptRisks (openshift/api config/v1, AcceptRisk), in bytes.
const MaxName = 256

// ValidName reports whether an administrator can accept a finding by this name:
// it matches ^[A-Z][A-Za-z0-9.-]*$, CVO's rule for the names of risks
// (cluster-version-operator pkg/risk/risk.go), and has at most MaxName bytes.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxName && 'A' <= name[0] && name[0] <= 'Z' && strings.IndexFunc(name, notInName) < 0
}

// NameOf is the name of the finding about one object: the kind, which is a valid
// name, a dash and the object, in which a dash replaces every character that a
// valid name cannot have. The object is cut where the name would be too long.
func NameOf(kind, object string) string {
	object = strings.Map(func(r rune) rune {
		if notInName(r) {
			return '-'
		}
		return r
	}, object)
	object = object[:min(len(object), MaxName-len(kind)-1)]
	return kind + "-" + strings.Trim(object, "-")
}

func notInName(r rune) bool {
	alphanumeric := 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	return !alphanumeric && r != '.' && r != '-'
}
