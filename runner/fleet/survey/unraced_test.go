//go:build !race

package survey_test

import "time"

// addressSpace is the limit of the program under test, in KiB.
const addressSpace = "2097152"

// answerTime bounds the answer of a cluster.
const answerTime = 20 * time.Second
