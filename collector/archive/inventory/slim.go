package inventory

import (
	"bytes"

	"github.com/openshift/update-preflight/collector/archive/objects"
)

// fieldSets is the member of an entry of metadata.managedFields with the fields that a client has written:
// most of many objects.
const fieldSets = "fieldsV1"

// keepsFields reports whether checks read which fields of objects of a kind were written, and not only by
// whom, through which version and when.
func keepsFields(kind string) bool { return kind == "CronJob" } // when its jobTemplate was changed

// slim is an object, which is valid JSON, without the fields that its clients have written. It uses the
// memory of the object, and leaves one that has another form as it is.
func slim(object []byte, kind string) []byte {
	if keepsFields(kind) || !bytes.Contains(object, []byte(`"`+fieldSets+`"`)) {
		return object
	}
	managers := member(member(object, "metadata"), "managedFields")
	if len(managers) == 0 || managers[0] != '[' {
		return object
	}
	var cuts [][]byte
	err := objects.Items(managers, func(manager []byte) error {
		if manager[0] != '{' {
			return nil
		}
		return objects.Members(manager, func(key string, value []byte) error {
			if key == fieldSets && value[0] == '{' {
				cuts = append(cuts, value)
			}
			return nil
		})
	})
	if err != nil {
		return object
	}
	return without(object, cuts)
}

// member is the value of a key of an object, nil where it has none.
func member(object []byte, name string) []byte {
	var found []byte
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	_ = objects.Members(object, func(key string, value []byte) error { // what is not found is left
		if key == name {
			found = value
		}
		return nil
	})
	return found
}

// without is an object in which values that are parts of it, in their order, are null.
func without(object []byte, values [][]byte) []byte {
	kept := make([]byte, 0, len(object))
	from := 0
	for _, value := range values {
		at := cap(object) - cap(value) // where the part begins
		kept = append(append(kept, object[from:at]...), "null"...)
		from = at + len(value)
	}
	return append(kept, object[from:]...)
}
