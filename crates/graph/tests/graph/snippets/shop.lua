local json = require("a.json")
local M = {}
local function helper(a) return a end
-- Doc
function M.run(x) helper(x); json.enc(x); self:go() end
function M:meth(y) self:run(y) end
M.assigned = function() end
local t = { f = function() end, v = 1 }
for i, v in pairs(t) do v.go() end
return M
