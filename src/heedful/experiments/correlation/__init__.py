"""Does attention agree with other measures of importance?"""
