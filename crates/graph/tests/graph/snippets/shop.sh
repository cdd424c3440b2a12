#!/bin/bash
source ./lib.sh
. other.sh
LIMIT=3
# Doc
run() { local x=1; helper "$x"; ls; }
function other { run; }
other
