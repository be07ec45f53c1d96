// Uses the operations of the official Go client against a server, and says what came back wrong.
// Variables: ACCOUNT_HOST, ACCOUNT_KEY, ACCOUNT_READ_ONLY_KEY, and SECTIONS, names separated by commas (all of them
// without). Exit code 1 when a check failed.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

var sections = []struct {
	name string
	run  func()
}{
	{"catalog", catalog},
	{"items", items},
	{"ids", ids},
	{"patch", patch},
	{"batch", batch},
	{"queries", queries},
	{"paging", paging},
	{"readmany", readMany},
	{"changefeed", changeFeed},
	{"access", access},
	{"splits", splits},
}

func main() {
	var names []string
	for _, section := range sections {
		names = append(names, section.name)
	}
	asked := names
	if list := os.Getenv("SECTIONS"); list != "" {
		asked = strings.Split(list, ",")
	}
	for _, name := range asked {
		if !slices.Contains(names, name) {
			fmt.Fprintf(os.Stderr, "unknown section %s; there are %s\n", name, strings.Join(names, ", "))
			os.Exit(2)
		}
	}
	for _, section := range sections {
		if slices.Contains(asked, section.name) {
			setUp(section.name, section.run)
		}
	}
	fmt.Printf("%d passed, %d failed\n", counts.passed, counts.failed)
	if counts.failed > 0 {
		os.Exit(1)
	}
}
